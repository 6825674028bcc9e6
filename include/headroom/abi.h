/* The boundary between Headroom and its plugins: version 1.0 of a C ABI.
 *
 * A plugin is a shared library that exports one constant, `headroom_plugin`. The host reads its header and asks it for interfaces by
 * id (`headroom.datasource/1`, `headroom.model.torch/1`, ...): tables of functions that the plugin fills. The plugin asks the host for
 * services by id (`headroom.arrays/1`, ...): tables that the host fills. C++ authors write neither: see datasource.hpp and model.hpp.
 *
 * Rules for everything below:
 *  - Language: C11, fixed-width integers, 64-bit little-endian machines. Nothing throws across the boundary, in either direction.
 *  - Memory: whoever allocates frees. Pointers that the host passes are borrowed for the call. What a plugin returns lives as long as
 *    the object it describes; tables and option lists live for ever, because a plugin is never unloaded.
 *  - Strings are UTF-8 with a final NUL. Sizes are bytes, shapes are elements, arrays are row-major, unless a comment says otherwise.
 *  - Errors: a function returns HR_OK or another status and then fills the caller's `hr_error`, if that is not NULL. After an error
 *    results are unspecified and the object stays usable. An unknown status counts as HR_INTERNAL.
 *  - Growth: whoever fills a struct sets its `struct_size`. Structs grow at the end only. A member newer than 1.0 is read through
 *    HR_HAS; its comment states the default that holds where it is missing. A struct may be larger than expected, never smaller than
 *    in 1.0. Where a caller passes a struct to be filled, struct_size is the room there is; the callee writes no further and sets
 *    struct_size to what it filled. Arrays of structs stride by the struct_size of their first element. A struct without struct_size
 *    never grows. Reserved members are zero. An optional function may be NULL, which means the same as missing.
 *  - Threads: [control] one call at a time for the object; [compute] one dedicated thread, one call at a time for the model;
 *    [worker] one call at a time for the reader, from any thread; [any] from any thread, also at the same time.
 */
#ifndef HEADROOM_ABI_H
#define HEADROOM_ABI_H

#include <stddef.h>
#include <stdint.h>

#include "headroom/dlpack.h"

#ifdef __cplusplus
extern "C" {
#define HR_NOEXCEPT noexcept
#else
#define HR_NOEXCEPT
#endif

#define HR_ABI_MAJOR 1
#define HR_ABI_MINOR 0
#define HR_MAGIC 0x524D5248u /* "HRMR", little endian */

/* True if the filled struct *p contains `member`. Members of 1.0 are always there; newer ones are read only after asking. */
#define HR_HAS(p, member) \
  ((p)->struct_size >= (uint32_t)((const char*)(&(p)->member + 1) - (const char*)(p)))

/* ---- status and error ---------------------------------------------------------------------------------------------------------- */

typedef int32_t hr_status;
#define HR_OK 0
#define HR_INVALID_ARGUMENT 1 /* an option or a field is wrong: the user can correct it in the experiment file */
#define HR_UNSUPPORTED 2      /* this plugin, host or machine cannot do it */
#define HR_IO 3               /* the operating system could not read or write; the message says which file */
#define HR_OUT_OF_MEMORY 4    /* the host may release memory and call again */
#define HR_CANCELLED 5        /* stopped because headroom.cancel said so */
#define HR_INTERNAL 6         /* a bug */
#define HR_NOT_FOUND 7        /* no such index, key, attribute or dataset */
#define HR_DATA_CORRUPT 8     /* this sample cannot be read; others can */

/* The caller owns it. `message` is one sentence: what was found, what is allowed, what to do. 512 bytes for ever. */
typedef struct hr_error {
  uint32_t struct_size;
  hr_status code;
  char message[504];
} hr_error;

/* ---- the plugin, and the host it sees ------------------------------------------------------------------------------------------ */

typedef struct hr_host hr_host;

#define HR_PLUGIN_TORCH 1u /* links LibTorch: torch_tag must be set and equal the host's */
#define HR_PLUGIN_CUDA 2u  /* links LibTorch's CUDA libraries */

/* The one exported symbol: `const hr_plugin headroom_plugin`. The first 16 bytes never change. */
typedef struct hr_plugin {
  uint32_t magic;                /* HR_MAGIC */
  uint16_t abi_major, abi_minor; /* of the header it was built with */
  uint32_t struct_size;
  uint32_t flags;           /* HR_PLUGIN_* */
  const char* id;           /* what experiment files call it: [a-z][a-z0-9_]* */
  const char* version;      /* the plugin's own */
  const char* summary;      /* one line for `headroom plugins list` */
  const char* torch_tag;    /* NULL: torch-free */
  uint16_t min_host_minor;  /* the oldest host minor it works with: what it needs, not what it was built with */
  uint16_t reserved0;
  uint32_t reserved1;
  hr_status (*init)(const hr_host* host, hr_error* error) HR_NOEXCEPT; /* [control] once after loading, cheap: no files, no device; optional */
  const void* (*get_interface)(const char* id) HR_NOEXCEPT;            /* [any] NULL if unknown; the table is valid for ever */
} hr_plugin;

#define HR_PLUGIN_SYMBOL "headroom_plugin"

/* The host as one plugin of one run sees it. Valid until the process ends. Arrays, cache blocks and accounts belong to the hr_host they
 * were made with: an object opened through one is used through that one only. */
struct hr_host {
  uint32_t struct_size;
  uint16_t abi_major, abi_minor;
  const char* name;
  const char* version;
  const char* torch_tag;                                                       /* NULL in the torch-free host */
  const void* (*get_service)(const hr_host* host, const char* id) HR_NOEXCEPT; /* [any] NULL if absent; else valid for ever */
};

/* ---- the ELF note `.note.headroom` ----------------------------------------------------------------------------------------------
 * The header's facts, readable from the file without running the plugin: note name "headroom", type 1, this descriptor. The SDK's
 * HEADROOM_PLUGIN macro writes it. The header of a library without a note is checked after loading it. */
typedef struct hr_note {
  uint32_t magic;
  uint16_t abi_major, abi_minor;
  uint32_t struct_size; /* of hr_note */
  uint32_t flags;
  uint16_t min_host_minor;
  uint16_t reserved;
  char id[44];
  char torch_tag[64]; /* "" : torch-free */
} hr_note;

#define HR_NOTE_NAME "headroom"
#define HR_NOTE_TYPE 1u

/* ---- options ---------------------------------------------------------------------------------------------------------------------
 * A plugin declares the keys that its table in the experiment file may have. The host parses and checks them, and passes one typed
 * hr_value an option, in the order of the declaration. min, max and default are TOML literals: they print as users write them. */

typedef int32_t hr_type;
#define HR_BOOL 1
#define HR_I64 2
#define HR_F64 3
#define HR_STRING 4
#define HR_BYTES 5 /* "64 MiB" or an integer; arrives as i64 */
#define HR_PATH 6  /* arrives absolute, resolved against the file that set it */
#define HR_TABLE 7 /* sub-table with its own options */
#define HR_OPEN_TABLE 8 /* sub-table with any keys, for what others than the plugin declare; arrives as a string, a JSON object */
#define HR_LIST 16 /* HR_LIST | element type */

typedef struct hr_options hr_options;

typedef struct hr_option {
  const char* name;
  hr_type type;
  uint32_t required;          /* 1: must be set; else default_value applies */
  const char* default_value;  /* TOML literal; NULL: value.present == 0 unless the user sets it */
  const char* min;            /* inclusive, for numbers and list elements; NULL: none */
  const char* max;
  const char* const* choices; /* NULL-terminated, for strings and list elements; NULL: any */
  const char* help;           /* one line: meaning and unit */
  const hr_options* table;    /* for HR_TABLE and lists of it */
} hr_option;

struct hr_options {
  uint32_t struct_size;
  uint32_t option_size; /* sizeof(hr_option) in the plugin: the host strides by it */
  uint64_t count;
  const hr_option* options;
};

typedef struct hr_value hr_value;

/* One value. Borrowed for the call. */
struct hr_value {
  hr_type type;     /* as the option declared it */
  uint32_t present; /* 0: neither set nor defaulted */
  uint64_t count;   /* elements of a list; options of a table; else 1 */
  union {
    int64_t i64;  /* HR_BOOL (0, 1), HR_I64, HR_BYTES */
    double f64;   /* HR_F64 */
    const char* string; /* HR_STRING, HR_PATH, HR_OPEN_TABLE */
    const int64_t* i64s; /* lists of BOOL, I64, BYTES */
    const double* f64s;
    const char* const* strings;
    const hr_value* table;  /* HR_TABLE: `count` values in the order of option.table */
    const hr_value* tables; /* list of HR_TABLE: `count` values of type HR_TABLE */
  } as;
};

/* ---- fields: what a source gives and a model takes ------------------------------------------------------------------------------ */

#define HR_MAX_DIMS 8
#define HR_FIELD_NORMALIZE 1u /* the host may standardise it per channel: (x - mean) / std */
#define HR_FIELD_OPTIONAL 2u  /* the model works without this field */

/* One channel of a field that its source standardises itself: value = (measured - mean) / std. */
typedef struct hr_channel {
  uint32_t struct_size;
  uint32_t reserved;
  const char* name; /* NULL: none */
  const char* unit; /* of what was measured; NULL: the field's */
  double mean, std; /* std > 0; 0 and 1: as measured */
} hr_channel;

/* One named array of every sample: its type, its fixed shape, and what its axes and values mean. */
typedef struct hr_field {
  uint32_t struct_size;
  uint32_t flags; /* HR_FIELD_* */
  const char* name;
  DLDataType dtype;
  int32_t ndim;
  int64_t shape[HR_MAX_DIMS]; /* of one sample, without the batch axis; fixed */
  const char* axes[HR_MAX_DIMS]; /* "time", "channel", "height", ...; NULL where unnamed */
  const char* unit;              /* "rad", "V", ...; NULL: none */
  double sample_rate_hz;         /* of the time axis; 0: none */
  int32_t channel_axis;          /* axis that NORMALIZE keeps apart; -1: one statistic for all */
  int32_t reserved;
  /* What the channels are, and how to get back what was measured; NULL: unknown. */
  const hr_channel* channels;    /* [channel_count] */
  uint64_t channel_count;        /* the extent of channel_axis, or 0 */
} hr_field;

/* ---- headroom.datasource/1 -------------------------------------------------------------------------------------------------------
 * A source is immutable once open, and all threads share it. A reader belongs to one thread at a time. A sample is addressed by its
 * split and its index in that split. */

typedef struct hr_source hr_source;
typedef struct hr_reader hr_reader;

/* Consecutive samples that must stay in one split: a recording, a session, a clip. */
typedef struct hr_group {
  uint32_t struct_size;
  uint32_t reserved;
  const char* name;
  uint64_t first, count; /* sample indices [first, first + count) of the split */
} hr_group;

/* What hr_datasource.traits says of an open source. */
#define HR_SOURCE_NO_AUGMENT 1u /* HR_READ_AUGMENT changes nothing: the host may keep training samples in its cache */

#define HR_READ_AUGMENT 1u /* draw jitter, rotation and crops from the sample's key; without it draw nothing */

/* A request for `count` samples of one split. */
typedef struct hr_read {
  uint32_t struct_size;
  uint32_t flags; /* HR_READ_* */
  uint32_t split;
  uint32_t field_count;  /* as field_count() */
  uint64_t count;        /* samples to read */
  const uint64_t* index; /* [count], each < length(split) */
  const uint64_t* key;   /* [count], the samples' keys (headroom/random.h) */
  /* [field_count] slots to fill: host memory, contiguous, 64-byte aligned, of the field's dtype and shape [count, field.shape...].
   * data == NULL: the field is not wanted. */
  const DLTensor* fields;
} hr_read;

/* The dataset, or the member of its records, that holds values of a field. */
typedef struct hr_origin {
  uint32_t struct_size;
  uint32_t reserved;
  const char* path; /* as headroom.arrays opens it */
  const char* dataset;
  const char* member; /* of its records; NULL: the plain elements */
} hr_origin;

#define HR_DATASOURCE "headroom.datasource/1"
typedef struct hr_datasource {
  uint32_t struct_size;
  uint32_t reserved;
  const hr_options* options; /* keys of [data.options] */
  /* [control] Opens the data that the options describe; reads metadata only. `options` has options->count values. The caller owns *out. */
  hr_status (*open)(const hr_host* host, const hr_value* options, hr_source** out, hr_error* error) HR_NOEXCEPT;
  void (*close)(hr_source* source) HR_NOEXCEPT;                 /* [control] no reader is open */
  uint32_t (*field_count)(const hr_source* source) HR_NOEXCEPT; /* [any] 1 to 1024, constant */
  hr_status (*field)(const hr_source* source, uint32_t i, hr_field* out, hr_error* error) HR_NOEXCEPT; /* [any] HR_NOT_FOUND */
  uint32_t (*split_count)(const hr_source* source) HR_NOEXCEPT; /* [any] 1 to 64, constant */
  /* [any] Its name: "train", "val", "test" where the layout defines splits; one split "all" where the host is to divide the groups. */
  const char* (*split)(const hr_source* source, uint32_t split) HR_NOEXCEPT;
  uint64_t (*length)(const hr_source* source, uint32_t split) HR_NOEXCEPT; /* [any] samples, constant */
  /* [any] Groups cover [0, length) in order, without gaps. */
  uint64_t (*group_count)(const hr_source* source, uint32_t split) HR_NOEXCEPT;
  hr_status (*group)(const hr_source* source, uint32_t split, uint64_t i, hr_group* out, hr_error* error) HR_NOEXCEPT; /* [any] */
  /* [any] Optional. How much memory a sample needs, relative to others of this source; the planner probes the costliest. NULL: all 1. */
  double (*cost)(const hr_source* source, uint32_t split, uint64_t index) HR_NOEXCEPT;
  /* [any] The files whose content the samples depend on. The host identifies the data by them. */
  uint64_t (*file_count)(const hr_source* source) HR_NOEXCEPT;
  const char* (*file)(const hr_source* source, uint64_t i) HR_NOEXCEPT; /* [any] path */
  hr_status (*reader_open)(hr_source* source, hr_reader** out, hr_error* error) HR_NOEXCEPT; /* [any] the caller owns *out */
  void (*reader_close)(hr_reader* reader) HR_NOEXCEPT;                                       /* [worker] */
  /* [worker] Fills the slots of the request. Each sample is a pure function of (content, index, key, flags): neither the other samples
   * of the request, nor their order, nor the thread matters. HR_DATA_CORRUPT: the host may skip the sample and go on. */
  hr_status (*read)(hr_reader* reader, const hr_read* request, hr_error* error) HR_NOEXCEPT;
  /* [any] Optional. HR_SOURCE_*, constant; NULL: 0. */
  uint32_t (*traits)(const hr_source* source) HR_NOEXCEPT;
  /* [any] Optional. Dataset i that an HR_FIELD_NORMALIZE field is read from; HR_NOT_FOUND after the last one. A source names them only if
   *  - the field holds these values exactly as they are stored: none computed, none padded;
   *  - the values of one record are the field's channels, in order;
   *  - the source uses them for nothing else.
   * headroom.arrays may then read from a copy in which they are standardised (data.normalized_cache). NULL: none. */
  hr_status (*origin)(const hr_source* source, uint32_t field, uint64_t i, hr_origin* out, hr_error* error) HR_NOEXCEPT;
} hr_datasource;

/* headroom.synth/1, optional: writes data in the source's own layout, from which a model can learn. */
#define HR_SYNTH "headroom.synth/1"
typedef struct hr_synth {
  uint32_t struct_size;
  uint32_t reserved;
  const hr_options* options; /* keys of [data.synth] */
  /* [control] Fills `folder`, which exists and is empty; the host renames it into place afterwards. Equal options give equal bytes. */
  hr_status (*write)(const hr_host* host, const hr_value* options, const char* folder, hr_error* error) HR_NOEXCEPT;
} hr_synth;

/* ---- models ---------------------------------------------------------------------------------------------------------------------- */

typedef int32_t hr_mode;
#define HR_TRAIN 1
#define HR_EVAL 2

/* What a step needs besides its batch. Borrowed for the call. */
typedef struct hr_call {
  uint32_t struct_size;
  hr_mode mode;
  int64_t step;               /* optimizer steps done so far */
  uint64_t count;             /* samples in the batch */
  const uint64_t* sample_key; /* [count] all randomness of sample i is drawn from sample_key[i] */
  int32_t device_type;        /* DLDeviceType */
  int32_t device_id;
  void* stream;               /* device stream; NULL on the CPU */
  uint64_t recompute;         /* bit i: calls of recompute_kinds[i] keep no activations; backward computes them again */
} hr_call;

typedef int32_t hr_param_kind;
#define HR_PARAMETER 1
#define HR_BUFFER 2  /* state that training changes or a checkpoint must carry */
#define HR_DERIVED 3 /* recomputed from the options: in no checkpoint */

#define HR_PARAM_INERT 1u /* cannot influence the output: kept in checkpoints, never run, never trained */

/* An at::Tensor*, of the same LibTorch on both sides (the torch tag says so). */
typedef struct hr_tensor_opaque* hr_tensor;

/* One tensor of a model, and how the optimizer treats it. */
typedef struct hr_param {
  uint32_t struct_size;
  uint32_t flags; /* HR_PARAM_* */
  const char* name;
  hr_param_kind kind;
  int32_t reserved;
  hr_tensor tensor;            /* borrowed; the host may replace its storage (device, dtype) but never the object */
  const char* group;           /* optimizer group for users to name; NULL: "" */
  double lr_scale;             /* times train.optimizer.lr */
  double lr;                   /* > 0: replaces train.optimizer.lr x lr_scale, under the same schedule; 0: it does not */
  double weight_decay_scale;   /* times train.optimizer.weight_decay */
  int64_t frozen_until_step;   /* 0: trained from the start; INT64_MAX: never */
} hr_param;

typedef int32_t hr_role;
#define HR_PREDICTION 1
#define HR_TARGET 2
#define HR_MASK 3
#define HR_AUX 4

/* One result of a step beside the loss. */
typedef struct hr_output {
  uint32_t struct_size;
  hr_role role;
  const char* name;
  const char* unit; /* NULL: none */
} hr_output;

typedef int32_t hr_reduction;
#define HR_MEAN 1      /* sum / weight */
#define HR_ROOT_MEAN 2 /* sqrt(sum / weight) */

typedef int32_t hr_better;
#define HR_LOWER 1
#define HR_HIGHER 2

/* One number of an evaluation, reduced over all that was measured. */
typedef struct hr_metric {
  uint32_t struct_size;
  hr_reduction reduction;
  const char* name;
  const char* unit; /* NULL: none */
  hr_better better;
  int32_t reserved;
} hr_metric;

#define HR_COUPLES_SAMPLES 1u /* a sample's output depends on the others of its batch (BatchNorm): a batch is never split */
#define HR_MODEL_FP64 2u      /* works in float64 */
#define HR_MODEL_BF16 4u      /* works under bfloat16 autocast; parameters, floating fields and loss_sum stay float32 */
#define HR_MODEL_FP16 32u     /* works under float16 autocast; the host scales loss_sum before backward */
#define HR_RNG_KEYED 8u       /* draws from sample keys only; with neither RNG flag it draws nothing */
#define HR_RNG_GENERATOR 16u  /* draws from LibTorch's generator: a retry never changes the micro-batch */
#define HR_MODEL_MANY_ROWS 64u /* small weight matrices meet thousands of rows a sample; a hint for speed, other hosts ignore it */

typedef struct hr_model hr_model;

/* headroom.model.torch/1: source-stable, for C++ plugins built with the host's LibTorch. */
#define HR_MODEL_TORCH "headroom.model.torch/1"
typedef struct hr_model_torch {
  uint32_t struct_size;
  uint32_t capabilities;     /* HR_COUPLES_SAMPLES, HR_MODEL_*, HR_RNG_*; of one model: headroom/capabilities.h */
  const hr_options* options; /* keys of [model.options] */
  /* [control] Builds the model on the CPU in float32; first weights are a function of `seed` alone. `fields` are the source's,
   * [field_count], in the order of every batch. HR_INVALID_ARGUMENT if options and fields do not suit. The caller owns *out. */
  hr_status (*create)(const hr_host* host, const hr_value* options, const hr_field* fields, uint32_t field_count, uint64_t seed,
                      hr_model** out, hr_error* error) HR_NOEXCEPT;
  void (*destroy)(hr_model* model) HR_NOEXCEPT; /* [control] */
  /* [control] Counts are constant. Descriptions live as long as the model; an index past the end is HR_NOT_FOUND. */
  uint32_t (*param_count)(const hr_model* model) HR_NOEXCEPT; /* parameters, buffers and derived */
  hr_status (*param)(hr_model* model, uint32_t i, hr_param* out, hr_error* error) HR_NOEXCEPT;
  uint32_t (*output_count)(const hr_model* model) HR_NOEXCEPT;
  hr_status (*output)(const hr_model* model, uint32_t i, hr_output* out, hr_error* error) HR_NOEXCEPT;
  uint32_t (*metric_count)(const hr_model* model) HR_NOEXCEPT;
  hr_status (*metric)(const hr_model* model, uint32_t i, hr_metric* out, hr_error* error) HR_NOEXCEPT;
  /* [compute] One forward pass. `batch` has field_count handles, NULL where a field is absent; inputs are never written.
   * Floating fields arrive in the run's dtype. Assigns:
   *   loss_sum, weight  0-dim: the loss summed over the elements that count, and their number; if none counts, 0 and 0, never NaN;
   *   outputs           [output_count] handles, detached; NULL: not wanted;
   *   metrics           float64 [metric_count, 2] of (sum, weight); NULL: not wanted.
   * Never a mean: the host divides once per optimizer step, so that splitting a batch changes nothing. Must not synchronise a device.
   * HR_OUT_OF_MEMORY: the host frees memory and calls again, perhaps with fewer samples. */
  hr_status (*step)(hr_model* model, const hr_call* call, const hr_tensor* batch, hr_tensor loss_sum, hr_tensor weight,
                    const hr_tensor* outputs, hr_tensor metrics, hr_error* error) HR_NOEXCEPT;
  /* Activation checkpointing: names of the calls that hr_call.recompute may ask to compute again, as users write them in
   * memory.recompute. NULL-terminated, at most 64, ordered by bytes saved per second of computing, most first. Outputs and losses are
   * the same with and without; so are gradients, up to the order in which those of one tensor are added. NULL: none. */
  const char* const* recompute_kinds;
} hr_model_torch;

/* headroom.state/1, optional: what a checkpoint must hold of a model beside its tensors. */
#define HR_STATE "headroom.state/1"
typedef struct hr_state {
  uint32_t struct_size;
  uint32_t reserved;
  /* [control] Passes the bytes to `write` in one or more calls. */
  hr_status (*save)(hr_model* model, void (*write)(void* context, const void* data, uint64_t bytes), void* context,
                    hr_error* error) HR_NOEXCEPT;
  /* [control] `data` is what save() wrote, whole, in this version of the plugin or an earlier one. HR_DATA_CORRUPT if it is not. */
  hr_status (*load)(hr_model* model, const void* data, uint64_t bytes, hr_error* error) HR_NOEXCEPT;
} hr_state;

/* headroom.gc/1, optional: gives memory back when the host asks. */
#define HR_GC "headroom.gc/1"
#define HR_TRIM_CACHES 1 /* what is cheap to make again */
#define HR_TRIM_ALL 2    /* everything that the next call does not need */
typedef struct hr_gc {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t (*trim_model)(hr_model* model, int32_t level) HR_NOEXCEPT;    /* [control] optional; returns bytes released */
  uint64_t (*trim_source)(hr_source* source, int32_t level) HR_NOEXCEPT; /* [control] optional; no read is running */
} hr_gc;

/* ---- services: what the host does for plugins --------------------------------------------------------------------------------------
 * All functions are [any]. Paths are absolute, or relative to the working folder. */

/* headroom.log/1: the run's log. Messages below the level that the user chose are dropped. */
#define HR_LOG "headroom.log/1"
#define HR_LOG_DEBUG 1
#define HR_LOG_INFO 2
#define HR_LOG_WARN 3
#define HR_LOG_ERROR 4
typedef struct hr_log {
  uint32_t struct_size;
  uint32_t reserved;
  int32_t (*enabled)(const hr_host* host, int32_t level) HR_NOEXCEPT;
  void (*write)(const hr_host* host, int32_t level, const char* message) HR_NOEXCEPT; /* copied */
} hr_log;

/* headroom.arrays/1: HDF5 datasets. The plugin says what to read; the host reads it, in parallel, with caches under the memory limit. */
#define HR_ARRAYS "headroom.arrays/1"
typedef struct hr_array hr_array;

typedef struct hr_array_info {
  uint32_t struct_size;
  int32_t ndim;
  uint64_t shape[HR_MAX_DIMS];
  uint64_t chunk[HR_MAX_DIMS]; /* all 0: contiguous */
  DLDataType dtype;            /* of an element; bits 0 for a compound */
  uint32_t member_count;       /* of a compound; 0: plain */
  uint32_t filtered;           /* 1: compressed, shuffled or checksummed */
  uint64_t element_bytes;      /* of one element or whole record in the file */
} hr_array_info;

typedef struct hr_array_member {
  uint32_t struct_size;
  int32_t ndim; /* of an array member; 0: scalar */
  uint64_t shape[HR_MAX_DIMS];
  const char* name;
  DLDataType dtype; /* bits 0: a type this service does not convert */
  uint64_t offset;  /* bytes into the record in the file */
} hr_array_member;

#define HR_WHOLE 0xFFFFFFFFu

/* A destination for one member (or HR_WHOLE, the plain element) of a box: element e, in row-major order, is converted to `dtype` and
 * written at data + e * stride_bytes. A kDLBool target becomes 0 or 1. */
typedef struct hr_array_target {
  uint32_t member;
  DLDataType dtype;
  void* data;
  uint64_t stride_bytes; /* 0: densely packed */
} hr_array_target;

/* The value of an attribute of a group or dataset: an integer of at most 8 bytes, a float of any width, or a string of fixed or variable
 * length. An integer above 2^63 - 1 is HR_UNSUPPORTED. */
typedef struct hr_attribute {
  uint32_t struct_size;
  hr_type type; /* HR_I64, HR_F64 or HR_STRING */
  int64_t i64;
  double f64; /* also set for HR_I64 */
  char string[512]; /* cut at 511 bytes */
} hr_attribute;

typedef struct hr_arrays {
  uint32_t struct_size;
  uint32_t reserved;
  /* Opens a dataset. The caller owns *out; many threads may read it at once. Opening is cheap while another array of the file is open.
   * HR_NOT_FOUND: no such file or dataset; HR_DATA_CORRUPT: not a sound HDF5 file. */
  hr_status (*open)(const hr_host* host, const char* path, const char* dataset, hr_array** out, hr_error* error) HR_NOEXCEPT;
  void (*close)(hr_array* array) HR_NOEXCEPT;
  hr_status (*info)(const hr_array* array, hr_array_info* out, hr_error* error) HR_NOEXCEPT;
  hr_status (*member)(const hr_array* array, uint32_t i, hr_array_member* out, hr_error* error) HR_NOEXCEPT; /* name lives with the array */
  /* Reads the box [start, start + count), each [ndim], into every target. HR_INVALID_ARGUMENT if it reaches beyond the array;
   * HR_DATA_CORRUPT if a chunk cannot be decoded. */
  hr_status (*read_box)(hr_array* array, const uint64_t* start, const uint64_t* count, const hr_array_target* targets,
                        uint32_t target_count, hr_error* error) HR_NOEXCEPT;
  /* As read_box. *finite = 1 if every value written to a float32 or float64 target is finite, else 0; the caller then searches its
   * targets. Values are checked while they are copied, which is cheaper than a pass of its own. */
  hr_status (*read_box_check_finite)(hr_array* array, const uint64_t* start, const uint64_t* count, const hr_array_target* targets,
                                     uint32_t target_count, int32_t* finite, hr_error* error) HR_NOEXCEPT;
  /* Calls `visit` for every group (is_group 1) and dataset (0) directly below `group`, in byte order, until it returns non-zero. */
  hr_status (*list)(const hr_host* host, const char* path, const char* group,
                    int32_t (*visit)(void* context, const char* name, int32_t is_group), void* context, hr_error* error) HR_NOEXCEPT;
  hr_status (*attribute)(const hr_host* host, const char* path, const char* object, const char* name, hr_attribute* out,
                         hr_error* error) HR_NOEXCEPT; /* HR_NOT_FOUND if absent */
} hr_arrays;

/* headroom.strings/1: strings in HDF5 files, of fixed or variable length. */
#define HR_STRINGS "headroom.strings/1"
typedef struct hr_strings {
  uint32_t struct_size;
  uint32_t reserved;
  /* Calls `visit` for each string in row-major order, at most 2^20, until it returns non-zero. */
  hr_status (*read)(const hr_host* host, const char* path, const char* dataset, int32_t (*visit)(void* context, const char* value),
                    void* context, hr_error* error) HR_NOEXCEPT;
  /* The same for an attribute of a group or dataset: one string, or a list of them, of any length. HR_NOT_FOUND if absent. */
  hr_status (*attribute)(const hr_host* host, const char* path, const char* object, const char* name,
                         int32_t (*visit)(void* context, const char* value), void* context, hr_error* error) HR_NOEXCEPT;
} hr_strings;

/* headroom.files/1: files of other formats, and folders. */
#define HR_FILES "headroom.files/1"
typedef struct hr_files {
  uint32_t struct_size;
  uint32_t reserved;
  hr_status (*size)(const hr_host* host, const char* path, uint64_t* bytes, hr_error* error) HR_NOEXCEPT;
  /* Reads exactly `bytes` bytes at `offset`; HR_DATA_CORRUPT if the file ends before. */
  hr_status (*pread)(const hr_host* host, const char* path, uint64_t offset, void* data, uint64_t bytes, hr_error* error) HR_NOEXCEPT;
  /* Calls `visit` for every name in a folder, in byte order, until it returns non-zero. Names that begin with "." and the host's own
   * normalized copies are left out. */
  hr_status (*list)(const hr_host* host, const char* folder, int32_t (*visit)(void* context, const char* name, int32_t is_folder),
                    void* context, hr_error* error) HR_NOEXCEPT;
} hr_files;

/* headroom.array_writer/1: writes one HDF5 file under a temporary name; close(commit = 1) renames it into place. One
 * call at a time for a writer. */
#define HR_ARRAY_WRITER "headroom.array_writer/1"
typedef struct hr_writer hr_writer;

typedef struct hr_array_spec {
  uint32_t struct_size;
  int32_t ndim;
  const char* dataset;         /* "/group/name"; missing groups are created */
  uint64_t shape[HR_MAX_DIMS]; /* shape[0] grows with append: give the final length, or 0 for unknown (chunked) */
  uint64_t chunk[HR_MAX_DIMS]; /* all 0: contiguous (needs shape[0]) */
  DLDataType dtype;            /* of a plain element */
  uint32_t member_count;       /* of a compound; 0: plain */
  int32_t deflate;             /* 0-9; 0: none */
  const hr_array_member* members; /* [member_count], offsets into the record that append is given */
  uint64_t record_bytes;       /* of a compound */
} hr_array_spec;

typedef struct hr_array_writer {
  uint32_t struct_size;
  uint32_t reserved;
  hr_status (*create)(const hr_host* host, const char* path, hr_writer** out, hr_error* error) HR_NOEXCEPT;
  hr_status (*dataset)(hr_writer* writer, const hr_array_spec* spec, uint32_t* id, hr_error* error) HR_NOEXCEPT;
  /* Appends `rows` rows along axis 0. */
  hr_status (*append)(hr_writer* writer, uint32_t id, const void* data, uint64_t rows, hr_error* error) HR_NOEXCEPT;
  /* Sets an attribute of a group or dataset; value->type says which member counts. */
  hr_status (*attribute)(hr_writer* writer, const char* object, const char* name, const hr_attribute* value, hr_error* error) HR_NOEXCEPT;
  /* Frees the writer, also on error. commit = 0 leaves no file. */
  hr_status (*close)(hr_writer* writer, int32_t commit, hr_error* error) HR_NOEXCEPT;
} hr_array_writer;

/* headroom.memory/1: what a plugin allocates appears in the run's memory ledger under the plugin's id. */
#define HR_MEMORY "headroom.memory/1"
typedef struct hr_memory {
  uint32_t struct_size;
  uint32_t reserved;
  /* Adds delta_bytes (negative: freed) to what the plugin says it holds. `owner` names a part of it; NULL or "": the whole. */
  void (*account)(const hr_host* host, const char* owner, int64_t delta_bytes) HR_NOEXCEPT;
  /* Allocates and accounts for `bytes` bytes, 64-byte aligned. The caller frees *out with scratch_free.
   * HR_OUT_OF_MEMORY if the memory limit leaves no room. */
  hr_status (*scratch)(const hr_host* host, uint64_t bytes, void** out, hr_error* error) HR_NOEXCEPT;
  void (*scratch_free)(const hr_host* host, void* data) HR_NOEXCEPT;
} hr_memory;

/* headroom.cache/1: immutable blocks of bytes by key, all together below `data.cache_size`. A block is shared, never copied, and stays
 * valid while someone holds it. A key names content: file, position and whatever else decides the bytes. */
#define HR_CACHE "headroom.cache/1"
typedef struct hr_cache_block {
  uint32_t struct_size;
  uint32_t reserved;
  const void* data;
  uint64_t bytes;
  void* reference; /* the host's */
} hr_cache_block;
typedef struct hr_cache {
  uint32_t struct_size;
  uint32_t reserved;
  /* Finds a published block. The caller holds it until release. HR_NOT_FOUND on a miss. */
  hr_status (*lookup)(const hr_host* host, const char* key, hr_cache_block* out, hr_error* error) HR_NOEXCEPT;
  /* Makes room for a new block: the caller fills out->data, then publishes or releases it. HR_OUT_OF_MEMORY if it does not fit. */
  hr_status (*reserve)(const hr_host* host, const char* key, uint64_t bytes, hr_cache_block* out, hr_error* error) HR_NOEXCEPT;
  void (*publish)(const hr_host* host, hr_cache_block* block) HR_NOEXCEPT; /* others find it from here on; the caller still holds it */
  void (*release)(const hr_host* host, hr_cache_block* block) HR_NOEXCEPT; /* an unpublished block is discarded */
  /* lookup or else reserve, in one step. *fresh = 0: the block is there. *fresh = 1: the caller fills it, then publishes or releases it.
   * Waits for a block that another thread is filling, so that it is read once; a thread that holds an unpublished block itself does
   * not wait. HR_OUT_OF_MEMORY: read without the cache. */
  hr_status (*acquire)(const hr_host* host, const char* key, uint64_t bytes, hr_cache_block* out, int32_t* fresh,
                       hr_error* error) HR_NOEXCEPT;
} hr_cache;

/* headroom.rng/1: the host's keyed generator, Philox4x32-10, for plugins that cannot include headroom/random.h. */
#define HR_RNG "headroom.rng/1"
typedef struct hr_rng {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t (*sample_key)(uint64_t seed, uint32_t split, uint64_t epoch, uint64_t index) HR_NOEXCEPT;
  void (*fill)(uint64_t key, uint64_t site, uint64_t first_block, uint32_t* out, uint64_t blocks) HR_NOEXCEPT; /* 4 words a block */
} hr_rng;

/* headroom.cancel/1: whether the run is asked to stop. */
#define HR_CANCEL "headroom.cancel/1"
typedef struct hr_cancel {
  uint32_t struct_size;
  uint32_t reserved;
  int32_t (*cancelled)(const hr_host* host) HR_NOEXCEPT; /* 1: return HR_CANCELLED soon; long reads poll it */
} hr_cancel;

#ifdef __cplusplus
}
#endif
#endif
