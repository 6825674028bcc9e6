/* loader_library/: libheadroom_loader.so, the loader of runner/data for a process that is not Headroom's:
 * python/headroom/loader_library.py calls it through ctypes. This header is its whole interface.
 *
 *   loader_library.cpp   the functions below          opened_loader   an experiment's [data], opened for batches
 *   exported_batch       one batch as DLPack tensors
 *
 * Rules, besides those of headroom/abi.h:
 *  - The library and whoever calls it are of one build. This interface is no part of the stable ABI.
 *  - Errors: a function that takes an hr_error returns HR_OK or another status and then fills it, if that is not NULL, with the runner's own
 *    sentence. Nothing throws.
 *  - Threads: one thread at a time for each loader; several loaders at the same time. Batches and their tensors belong to whoever has them: any
 *    thread may release them, also after their loader was closed.
 *  - Forks: a loader works in the process that opened it. In a forked child every function refuses it with a sentence, hr_loader_close() does
 *    nothing, and what is released is not freed.
 *  - It needs no LibTorch and no jemalloc, installs no handler of signals (except that of SIGBUS for data.memory_map) and writes to stderr only. */
#ifndef HEADROOM_LOADER_LIBRARY_H
#define HEADROOM_LOADER_LIBRARY_H

#include "headroom/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hr_loader hr_loader;
typedef struct hr_loader_batch hr_loader_batch;

/* As --set key=value: "data.num_workers", "4"; "data.options", "{ path = 'a.h5', window_size = 10 }". */
typedef struct hr_loader_key {
  const char* key;
  const char* value; /* TOML; what is none is taken as a string */
} hr_loader_key;

typedef struct hr_loader_request {
  uint32_t struct_size;
  int32_t training;                /* 1: as a run trains: shuffled, augmented; 0: as it evaluates: in order; -1: 1 for the split "train", else 0 */
  const char* experiment;          /* an experiment file, or the name of one of Headroom's own; NULL: `keys` alone, of which data.source is needed */
  const hr_loader_key* keys;       /* win over the file */
  uint64_t key_count;
  const char* split;               /* "train", "val" or "test"; NULL: "train" */
  int64_t batch_size;              /* 0: train.batch_size; else also the window that train.drop_last drops */
  const char* const* plugin_dirs;  /* NULL-terminated; NULL: $HEADROOM_PLUGIN_PATH and headroom/ beside this library */
} hr_loader_request;

/* Opens the source, divides it, and measures or finds the statistics of the normalisation, as the start of a run does; this may take a while.
 * Reads no batch and starts no thread. The caller owns *out. HR_INVALID_ARGUMENT: what the request or the experiment gets wrong;
 * HR_UNSUPPORTED: a plugin; HR_DATA_CORRUPT: the data; HR_OUT_OF_MEMORY. */
hr_status hr_loader_open(const hr_loader_request* request, hr_loader** out, hr_error* error) HR_NOEXCEPT;

/* Ends the loader's threads, each after the batch it is reading. Batches that are held stay valid. Does nothing for NULL. */
void hr_loader_close(hr_loader* loader) HR_NOEXCEPT;

/* A JSON object, valid as long as the loader:
 *   source, split     names                     training          true or false
 *   batch_size        samples                   samples, batches  of one epoch
 *   fields            [{name, unit, dtype, shape of one sample, axes, sample_rate_hz, channel_axis, channels, mean, std}]; mean and std have one
 *                     number a channel: a value is (measured - mean) / std, in `unit`; they are null where values are as measured
 *   order             a digest: loaders of which it is equal deliver the same samples at the same epoch and position, with the same values
 *   slots, slot_bytes batches that the loader has memory for, and the bytes of each
 *   notes             sentences for the user: the order that was chosen, what was measured */
const char* hr_loader_description(const hr_loader* loader) HR_NOEXCEPT;

/* The next batch begins at sample `position` of `epoch`. What was read ahead for there stays, else it is dropped. HR_INVALID_ARGUMENT where
 * `position` is no multiple of the batch size, or beyond the epoch. */
hr_status hr_loader_seek(hr_loader* loader, uint64_t epoch, uint64_t position, hr_error* error) HR_NOEXCEPT;

#define HR_LOADER_BATCH 1     /* *out is the next batch */
#define HR_LOADER_EPOCH_END 2 /* the epoch is over; the next call begins the next one */
#define HR_LOADER_WAITING 3   /* the batch was not ready within wait_ms: call again */

/* The next batch, which the caller has to release. Waits at most `wait_ms` for readers; with data.num_workers = 0 the batch is read in the
 * call. A batch that lost all of its samples (data.on_bad_sample) is left out. After an error the next call reads the same batch again.
 *
 * A held batch keeps its slot. Where all slots are held the loader makes another one, so it never waits for the caller. */
hr_status hr_loader_next(hr_loader* loader, uint32_t wait_ms, int32_t* outcome, hr_loader_batch** out, hr_error* error) HR_NOEXCEPT;

/* Where the loader stands. */
typedef struct hr_loader_place {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t epoch, position;  /* of the first sample of the next batch; 0 of the next epoch where one is over */
  uint64_t held;             /* batches that are not released, with those whose tensors live on */
  uint64_t skipped;          /* samples that were left out, so far */
} hr_loader_place;
hr_status hr_loader_where(const hr_loader* loader, hr_loader_place* out, hr_error* error) HR_NOEXCEPT;

/* One batch; valid until it is released. */
typedef struct hr_loader_batch_info {
  uint32_t struct_size;
  uint32_t fields;        /* as many as the source has */
  uint64_t epoch, first;  /* position of its first sample in the epoch's order */
  uint64_t count;         /* samples */
  const uint64_t* index;  /* of each sample, in the source */
} hr_loader_batch_info;
hr_loader_batch_info hr_loader_batch_look(const hr_loader_batch* batch) HR_NOEXCEPT;

/* Field `field` as a tensor of shape [count, shape...] in the slot's memory, without a copy: row-major, 64-byte aligned, writable. It keeps the slot
 * until its deleter is called, also after the batch was released. */
hr_status hr_loader_tensor(const hr_loader_batch* batch, uint32_t field, DLManagedTensorVersioned** out, hr_error* error) HR_NOEXCEPT;
/* The same for consumers that know DLPack before 1.0. */
hr_status hr_loader_tensor_unversioned(const hr_loader_batch* batch, uint32_t field, DLManagedTensor** out, hr_error* error) HR_NOEXCEPT;
/* Call the deleter of a tensor that no consumer took. */
void hr_loader_drop_tensor(DLManagedTensorVersioned* tensor) HR_NOEXCEPT;
void hr_loader_drop_unversioned(DLManagedTensor* tensor) HR_NOEXCEPT;

void hr_loader_release(hr_loader_batch* batch) HR_NOEXCEPT; /* does nothing for NULL */

#ifdef __cplusplus
}
#endif
#endif
