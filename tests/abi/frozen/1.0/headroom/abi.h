/* The boundary between Headroom and its plugins: version 1 of a C ABI.
 *
 * A plugin is a shared library that exports one constant, `headroom_plugin`. The host reads its header, asks it for interfaces by
 * name (`headroom.datasource/1`, `headroom.model.torch/1`, ...) and gives it services by name (`headroom.arrays/1`, ...).
 *
 * Rules that hold for everything below:
 *  - Plain C11, fixed-width integers, no allocation crosses: whoever allocates frees.
 *  - Whoever fills a struct sets its `struct_size`. Structs grow at the end only; a member newer than 1.0 is read through HR_HAS.
 *    A larger struct than expected is accepted, a missing member has the default its comment states. Where a caller passes a struct to
 *    be filled, it sets struct_size to the room there is; the callee writes no further and sets it to what it filled. Arrays of
 *    structs stride by their first element's struct_size; a struct without struct_size never grows.
 *  - Functions return HR_OK or a status and fill the caller's `hr_error` (which may be NULL). Nothing throws, in either direction.
 *  - Strings are NUL-terminated UTF-8. What the host passes is borrowed for the call; what a plugin returns lives as long as the
 *    object it describes (tables and option lists: for ever, a plugin is never unloaded).
 *  - Every function carries its thread rule: [control] one at a time; [compute] one dedicated thread, serial per model;
 *    [worker] a reader's thread, serial per reader; [any] from any thread at any time.
 *  - An unknown status counts as HR_INTERNAL. Reserved members are zero.
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

/* True when the filled struct *p reaches as far as `member`. */
#define HR_HAS(p, member) \
  ((p)->struct_size >= (uint32_t)((const char*)(&(p)->member + 1) - (const char*)(p)))

/* ---- status and error ---------------------------------------------------------------------------------------------------------- */

typedef int32_t hr_status;
#define HR_OK 0
#define HR_INVALID_ARGUMENT 1 /* an option or a field is not what it must be: the user can mend it in the experiment file */
#define HR_UNSUPPORTED 2
#define HR_IO 3
#define HR_OUT_OF_MEMORY 4 /* the host may release memory and call again */
#define HR_CANCELLED 5
#define HR_INTERNAL 6
#define HR_NOT_FOUND 7
#define HR_DATA_CORRUPT 8 /* this sample cannot be read; others can */

/* One clear sentence: what was found, what is allowed, what to do. Caller-owned; 512 bytes for ever. */
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
  hr_status (*init)(const hr_host* host, hr_error* error) HR_NOEXCEPT; /* [control] once, cheap: no files, no device; NULL allowed */
  const void* (*get_interface)(const char* id) HR_NOEXCEPT;            /* [any] NULL when unknown; valid for ever */
} hr_plugin;

#define HR_PLUGIN_SYMBOL "headroom_plugin"

/* Lives as long as the process. It belongs to the run that passes it: what is opened with one works with that one, and not with the
 * host of another call. */
struct hr_host {
  uint32_t struct_size;
  uint16_t abi_major, abi_minor;
  const char* name;
  const char* version;
  const char* torch_tag;                                                            /* NULL in the torch-free host */
  const void* (*get_service)(const hr_host* host, const char* id) HR_NOEXCEPT;      /* [any] NULL when absent */
};

/* ---- the ELF note `.note.headroom` ----------------------------------------------------------------------------------------------
 * The same facts where the host can read them without running the plugin: note name "headroom", type 1, this descriptor.
 * The SDK's HEADROOM_PLUGIN macro emits it. A library without a note is loaded and its header checked after the fact. */
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
 * A plugin declares the keys of its table in the experiment file; the host parses, checks, and hands over typed values in the
 * table's own order. min, max and default are TOML literals as text, so that defaults print as users would write them. */

typedef int32_t hr_type;
#define HR_BOOL 1
#define HR_I64 2
#define HR_F64 3
#define HR_STRING 4
#define HR_BYTES 5 /* "64 MiB" or an integer; arrives as i64 */
#define HR_PATH 6  /* arrives absolute, resolved against the file that set it */
#define HR_TABLE 7 /* sub-table with its own options */
#define HR_LIST 16 /* HR_LIST | element type */

typedef struct hr_options hr_options;

typedef struct hr_option {
  const char* name;
  hr_type type;
  uint32_t required;          /* 1: must be set; else default_value applies */
  const char* default_value;  /* TOML literal; NULL: absent unless set (value.present == 0) */
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
    const char* string; /* HR_STRING, HR_PATH */
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
#define HR_FIELD_OPTIONAL 2u  /* of a model's field: it works without */

/* One channel of a field whose source standardises its values itself: value = (measured - mean) / std. */
typedef struct hr_channel {
  uint32_t struct_size;
  uint32_t reserved;
  const char* name; /* NULL: none */
  const char* unit; /* of what was measured; NULL: the field's */
  double mean, std; /* std > 0; 0 and 1: as measured */
} hr_channel;

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
  /* What each place along channel_axis is, and how to get back what was measured; NULL: unknown. */
  const hr_channel* channels;    /* [channel_count] */
  uint64_t channel_count;        /* the extent of channel_axis, or 0 */
} hr_field;

/* ---- headroom.datasource/1 -------------------------------------------------------------------------------------------------------
 * A source is immutable once open and shared by all threads; a reader belongs to one thread at a time. */

typedef struct hr_source hr_source;
typedef struct hr_reader hr_reader;

/* A run of neighbouring samples that must not be divided between splits: a recording, a session, a clip. */
typedef struct hr_group {
  uint32_t struct_size;
  uint32_t reserved;
  const char* name;
  uint64_t first, count; /* sample indices [first, first + count) of the split */
} hr_group;

/* What hr_datasource.traits says of an open source. */
#define HR_SOURCE_NO_AUGMENT 1u /* HR_READ_AUGMENT changes nothing: the host may keep training samples in its cache */

#define HR_READ_AUGMENT 1u /* draw jitter, rotation, crops from the sample's key; otherwise none of them */

typedef struct hr_read {
  uint32_t struct_size;
  uint32_t flags; /* HR_READ_* */
  uint32_t split;
  uint32_t field_count;  /* as field_count() */
  uint64_t count;        /* samples to read */
  const uint64_t* index; /* [count], each < length(split) */
  const uint64_t* key;   /* [count], the samples' keys (headroom/random.h) */
  /* [field_count] host memory, row-major, contiguous, shape [count, field.shape...], 64-byte aligned. data == NULL: not wanted. */
  const DLTensor* fields;
} hr_read;

/* Where values of a field lie in the source's files. */
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
  /* [control] Reads metadata only. `options` has options->count values. */
  hr_status (*open)(const hr_host* host, const hr_value* options, hr_source** out, hr_error* error) HR_NOEXCEPT;
  void (*close)(hr_source* source) HR_NOEXCEPT;                        /* [control] no reader is open */
  uint32_t (*field_count)(const hr_source* source) HR_NOEXCEPT;        /* [any] */
  hr_status (*field)(const hr_source* source, uint32_t i, hr_field* out, hr_error* error) HR_NOEXCEPT; /* [any] */
  uint32_t (*split_count)(const hr_source* source) HR_NOEXCEPT;        /* [any] */
  const char* (*split)(const hr_source* source, uint32_t split) HR_NOEXCEPT; /* [any] "train", "val", "test"; or one split "all" */
  uint64_t (*length)(const hr_source* source, uint32_t split) HR_NOEXCEPT;   /* [any] samples */
  uint64_t (*group_count)(const hr_source* source, uint32_t split) HR_NOEXCEPT; /* [any] groups tile [0, length) in order */
  hr_status (*group)(const hr_source* source, uint32_t split, uint64_t i, hr_group* out, hr_error* error) HR_NOEXCEPT; /* [any] */
  double (*cost)(const hr_source* source, uint32_t split, uint64_t index) HR_NOEXCEPT; /* [any] relative bytes of a sample; NULL: all 1 */
  uint64_t (*file_count)(const hr_source* source) HR_NOEXCEPT;                   /* [any] files whose content the samples depend on */
  const char* (*file)(const hr_source* source, uint64_t i) HR_NOEXCEPT;          /* [any] path */
  hr_status (*reader_open)(hr_source* source, hr_reader** out, hr_error* error) HR_NOEXCEPT; /* [any] */
  void (*reader_close)(hr_reader* reader) HR_NOEXCEPT;                           /* [any] by whoever owns the reader */
  /* [worker] Fills the slots. A pure function of (content, index, key): batch mates, order and thread never matter. */
  hr_status (*read)(hr_reader* reader, const hr_read* request, hr_error* error) HR_NOEXCEPT;
  /* [any] HR_SOURCE_*, constant after open; NULL: 0. */
  uint32_t (*traits)(const hr_source* source) HR_NOEXCEPT;
  /* [any] Dataset i that an HR_FIELD_NORMALIZE field is read from; HR_NOT_FOUND after the last one. A source names them only if
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
  /* [control] `folder` exists and is empty; the host renames it into place afterwards. Same options, same bytes. */
  hr_status (*write)(const hr_host* host, const hr_value* options, const char* folder, hr_error* error) HR_NOEXCEPT;
} hr_synth;

/* ---- models ---------------------------------------------------------------------------------------------------------------------- */

typedef int32_t hr_mode;
#define HR_TRAIN 1
#define HR_EVAL 2

/* What a step is told besides its batch. Borrowed for the call. */
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

#define HR_PARAM_INERT 1u /* cannot influence the output: kept in checkpoints, neither run nor trained */

/* An at::Tensor*, of the same LibTorch on both sides (the torch tag says so). */
typedef struct hr_tensor_opaque* hr_tensor;

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

typedef struct hr_metric {
  uint32_t struct_size;
  hr_reduction reduction;
  const char* name;
  const char* unit; /* NULL: none */
  hr_better better;
  int32_t reserved;
} hr_metric;

#define HR_COUPLES_SAMPLES 1u /* a sample's output depends on its batch mates: the batch is never divided */
#define HR_MODEL_FP64 2u      /* works in float64 */
#define HR_MODEL_BF16 4u      /* works under bfloat16 autocast: parameters and floating fields stay float32, and so does loss_sum */
#define HR_MODEL_FP16 32u     /* works under float16 autocast; the host scales loss_sum before backward */
#define HR_RNG_KEYED 8u       /* draws from sample keys only (with neither RNG flag: draws nothing) */
#define HR_RNG_GENERATOR 16u  /* draws from LibTorch's generator: retried at the same split only, never resized */

typedef struct hr_model hr_model;

/* headroom.model.torch/1: source-stable, for C++ plugins built with the host's LibTorch. */
#define HR_MODEL_TORCH "headroom.model.torch/1"
typedef struct hr_model_torch {
  uint32_t struct_size;
  uint32_t capabilities;     /* HR_COUPLES_SAMPLES, HR_MODEL_*, HR_RNG_* */
  const hr_options* options; /* keys of [model.options] */
  /* [control] `fields` are the source's, [field_count], in the order of every batch. Builds on the CPU, in float32, from `seed` only. */
  hr_status (*create)(const hr_host* host, const hr_value* options, const hr_field* fields, uint32_t field_count, uint64_t seed,
                      hr_model** out, hr_error* error) HR_NOEXCEPT;
  void (*destroy)(hr_model* model) HR_NOEXCEPT;             /* [control] */
  uint32_t (*param_count)(const hr_model* model) HR_NOEXCEPT; /* [control] parameters, buffers, derived; constant */
  hr_status (*param)(hr_model* model, uint32_t i, hr_param* out, hr_error* error) HR_NOEXCEPT;         /* [control] */
  uint32_t (*output_count)(const hr_model* model) HR_NOEXCEPT;
  hr_status (*output)(const hr_model* model, uint32_t i, hr_output* out, hr_error* error) HR_NOEXCEPT; /* [control] */
  uint32_t (*metric_count)(const hr_model* model) HR_NOEXCEPT;
  hr_status (*metric)(const hr_model* model, uint32_t i, hr_metric* out, hr_error* error) HR_NOEXCEPT; /* [control] */
  /* [compute] One forward pass. `batch` has field_count handles, NULL where a field is absent; inputs are never written.
   * Floating fields arrive in the run's dtype. Assigns:
   *   loss_sum, weight  0-dim: the loss summed over what counts, and how much counted (0: nothing did; loss_sum then 0, never NaN);
   *   outputs           [output_count] handles, detached; NULL: not wanted;
   *   metrics           float64 [metric_count, 2] of (sum, weight); NULL: not wanted.
   * Never a mean: the host divides once per window. Nothing here may synchronise a device. */
  hr_status (*step)(hr_model* model, const hr_call* call, const hr_tensor* batch, hr_tensor loss_sum, hr_tensor weight,
                    const hr_tensor* outputs, hr_tensor metrics, hr_error* error) HR_NOEXCEPT;
  /* Activation checkpointing: names of the calls that hr_call.recompute may ask to compute again, as users write them in
   * memory.recompute. NULL-terminated, at most 64, ordered by bytes saved per second of computing, most first. Outputs and losses are
   * the same with and without; so are gradients, up to the order in which those of one tensor are added. NULL: none. */
  const char* const* recompute_kinds;
} hr_model_torch;

/* headroom.state/1, optional: what a model must carry through a checkpoint beside its tensors. */
#define HR_STATE "headroom.state/1"
typedef struct hr_state {
  uint32_t struct_size;
  uint32_t reserved;
  /* [control] Hands the bytes to `write` in one or more calls. */
  hr_status (*save)(hr_model* model, void (*write)(void* context, const void* data, uint64_t bytes), void* context, hr_error* error) HR_NOEXCEPT;
  hr_status (*load)(hr_model* model, const void* data, uint64_t bytes, hr_error* error) HR_NOEXCEPT; /* [control] */
} hr_state;

/* headroom.gc/1, optional: gives memory back when the host asks. */
#define HR_GC "headroom.gc/1"
#define HR_TRIM_CACHES 1 /* what can be made again cheaply */
#define HR_TRIM_ALL 2    /* everything not needed to go on */
typedef struct hr_gc {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t (*trim_model)(hr_model* model, int32_t level) HR_NOEXCEPT;    /* [control] bytes released; NULL allowed */
  uint64_t (*trim_source)(hr_source* source, int32_t level) HR_NOEXCEPT; /* [control] no read in flight; NULL allowed */
} hr_gc;

/* ---- services: what the host does for plugins. All functions are [any]. ---------------------------------------------------------- */

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

/* headroom.arrays/1: HDF5 datasets, read by the host: cached, accounted, in parallel. A plugin says what to read. */
#define HR_ARRAYS "headroom.arrays/1"
typedef struct hr_array hr_array;

typedef struct hr_array_info {
  uint32_t struct_size;
  int32_t ndim;
  uint64_t shape[HR_MAX_DIMS];
  uint64_t chunk[HR_MAX_DIMS]; /* all 0: contiguous */
  DLDataType dtype;            /* of an element; bits 0 for a compound */
  uint32_t member_count;       /* of a compound; 0: plain */
  uint32_t filtered;           /* 1: compressed or otherwise filtered */
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

/* Where one member (or HR_WHOLE, the plain element) of the selected elements goes, converted to `dtype`: element e in row-major
 * order of the box lands, densely packed, at data + e * stride_bytes. Members with kBool targets become 0 or 1. */
typedef struct hr_array_target {
  uint32_t member;
  DLDataType dtype;
  void* data;
  uint64_t stride_bytes; /* 0: densely packed */
} hr_array_target;

/* An attribute of a group or dataset. Integers and floats of any width, and strings fixed or variable. */
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
  /* Cheap: the file stays open while any of its arrays is. One handle may be read by many threads. */
  hr_status (*open)(const hr_host* host, const char* path, const char* dataset, hr_array** out, hr_error* error) HR_NOEXCEPT;
  void (*close)(hr_array* array) HR_NOEXCEPT;
  hr_status (*info)(const hr_array* array, hr_array_info* out, hr_error* error) HR_NOEXCEPT;
  hr_status (*member)(const hr_array* array, uint32_t i, hr_array_member* out, hr_error* error) HR_NOEXCEPT; /* name lives with the array */
  /* Reads the box [start, start + count) (each [ndim]) into every target. */
  hr_status (*read_box)(hr_array* array, const uint64_t* start, const uint64_t* count, const hr_array_target* targets,
                        uint32_t target_count, hr_error* error) HR_NOEXCEPT;
  /* As read_box. *finite = 1 if every value written to a float32 or float64 target is finite, else 0; the caller then searches its
   * targets. Values are checked while they are copied, which is cheaper than a pass of its own. */
  hr_status (*read_box_check_finite)(hr_array* array, const uint64_t* start, const uint64_t* count, const hr_array_target* targets,
                                     uint32_t target_count, int32_t* finite, hr_error* error) HR_NOEXCEPT;
  /* Names below a group, in byte order; is_group tells groups from datasets. Stops early when `visit` returns non-zero. */
  hr_status (*list)(const hr_host* host, const char* path, const char* group,
                    int32_t (*visit)(void* context, const char* name, int32_t is_group), void* context, hr_error* error) HR_NOEXCEPT;
  hr_status (*attribute)(const hr_host* host, const char* path, const char* object, const char* name, hr_attribute* out,
                         hr_error* error) HR_NOEXCEPT; /* HR_NOT_FOUND when it is not there */
} hr_arrays;

/* headroom.strings/1: HDF5 datasets of strings, fixed or variable: names, keys, lists of groups. */
#define HR_STRINGS "headroom.strings/1"
typedef struct hr_strings {
  uint32_t struct_size;
  uint32_t reserved;
  /* The dataset's strings in row-major order, at most 2^20. Stops early when `visit` returns non-zero. */
  hr_status (*read)(const hr_host* host, const char* path, const char* dataset, int32_t (*visit)(void* context, const char* value),
                    void* context, hr_error* error) HR_NOEXCEPT;
} hr_strings;

#define HR_FILES "headroom.files/1"
typedef struct hr_files {
  uint32_t struct_size;
  uint32_t reserved;
  hr_status (*size)(const hr_host* host, const char* path, uint64_t* bytes, hr_error* error) HR_NOEXCEPT;
  hr_status (*pread)(const hr_host* host, const char* path, uint64_t offset, void* data, uint64_t bytes, hr_error* error) HR_NOEXCEPT;
  /* Names in a folder in byte order; "." entries and the host's normalized copies left out. Stops early when `visit` returns non-zero. */
  hr_status (*list)(const hr_host* host, const char* folder, int32_t (*visit)(void* context, const char* name, int32_t is_folder),
                    void* context, hr_error* error) HR_NOEXCEPT;
} hr_files;

/* headroom.array_writer/1: one HDF5 file, written beside its name and renamed into place by close(commit = 1). */
#define HR_ARRAY_WRITER "headroom.array_writer/1"
typedef struct hr_writer hr_writer;

typedef struct hr_array_spec {
  uint32_t struct_size;
  int32_t ndim;
  const char* dataset;         /* "/group/name"; groups are made */
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
  /* `rows` further rows along axis 0, row-major. */
  hr_status (*append)(hr_writer* writer, uint32_t id, const void* data, uint64_t rows, hr_error* error) HR_NOEXCEPT;
  /* Of a group or dataset; attribute.type says which value. */
  hr_status (*attribute)(hr_writer* writer, const char* object, const char* name, const hr_attribute* value, hr_error* error) HR_NOEXCEPT;
  /* Frees the writer in every case. commit = 0 leaves nothing behind. */
  hr_status (*close)(hr_writer* writer, int32_t commit, hr_error* error) HR_NOEXCEPT;
} hr_array_writer;

/* headroom.memory/1: memory a plugin holds itself, on the ledger under the plugin's id. */
#define HR_MEMORY "headroom.memory/1"
typedef struct hr_memory {
  uint32_t struct_size;
  uint32_t reserved;
  void (*account)(const hr_host* host, const char* owner, int64_t delta_bytes) HR_NOEXCEPT;
  /* 64-byte aligned; HR_OUT_OF_MEMORY when the limit would be passed. */
  hr_status (*scratch)(const hr_host* host, uint64_t bytes, void** out, hr_error* error) HR_NOEXCEPT;
  void (*scratch_free)(const hr_host* host, void* data) HR_NOEXCEPT;
} hr_memory;

/* headroom.cache/1: immutable byte blocks under one byte limit (`data.cache_size`), counted references, no copies out. */
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
  /* HR_NOT_FOUND on a miss. A block found or published stays valid until released. */
  hr_status (*lookup)(const hr_host* host, const char* key, hr_cache_block* out, hr_error* error) HR_NOEXCEPT;
  /* Room for a new block (out->data may be written until publish); HR_OUT_OF_MEMORY when it cannot fit. */
  hr_status (*reserve)(const hr_host* host, const char* key, uint64_t bytes, hr_cache_block* out, hr_error* error) HR_NOEXCEPT;
  void (*publish)(const hr_host* host, hr_cache_block* block) HR_NOEXCEPT;
  void (*release)(const hr_host* host, hr_cache_block* block) HR_NOEXCEPT; /* unpublished: discarded */
  /* lookup or reserve, atomically: an existing block (*fresh = 0), or room for a new one (*fresh = 1: the caller fills it, then
   * publishes or releases it). Waits for a block that another thread is filling, so that it is read once; a thread that holds an
   * unpublished block itself does not wait. HR_OUT_OF_MEMORY when there is neither: read without the cache. */
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

#define HR_CANCEL "headroom.cancel/1"
typedef struct hr_cancel {
  uint32_t struct_size;
  uint32_t reserved;
  int32_t (*cancelled)(const hr_host* host) HR_NOEXCEPT; /* long reads poll it and return HR_CANCELLED */
} hr_cancel;

#ifdef __cplusplus
}
#endif
#endif
