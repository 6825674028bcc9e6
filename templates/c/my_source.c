/* my_source: a datasource plugin in C11. Here recordings that are computed; read your own files in their place (the
 * service headroom.arrays/1 reads HDF5). headroom/abi.h says what every function promises. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/abi.h"
#include "headroom/random.h"

enum { kInputs = 4 };

struct hr_source {
  uint64_t recordings, samples; /* samples of a recording */
};

struct hr_reader {
  const hr_source* source;
};

/* Fills the error, if somebody asks for it. Returns the status. */
static hr_status fail(hr_error* error, hr_status status, const char* sentence) {
  if (error != NULL) {
    error->struct_size = sizeof *error;
    error->code = status;
    snprintf(error->message, sizeof error->message, "%s", sentence);
  }
  return status;
}

/* Copies a struct to `out`, whose struct_size says how much room the host has, and sets it to what was filled. */
static void fill(void* out, const void* value, uint32_t bytes) {
  uint32_t room;
  memcpy(&room, out, sizeof room);
  if (bytes > room) bytes = room;
  memcpy(out, value, bytes);
  memcpy(out, &bytes, sizeof bytes);
}

/* The keys of [data.options]; their values arrive in this order. */
static const hr_option keys[] = {
    {.name = "recordings",
     .type = HR_I64,
     .default_value = "20",
     .min = "2",
     .help = "recordings, which stay in one split each"},
    {.name = "samples", .type = HR_I64, .default_value = "50", .min = "1", .help = "samples of a recording"},
};
static const hr_options options = {sizeof(hr_options), sizeof(hr_option), sizeof keys / sizeof keys[0], keys};

static hr_status source_open(const hr_host* host, const hr_value* values, hr_source** out, hr_error* error) {
  (void)host;
  hr_source* source = malloc(sizeof *source);
  if (source == NULL) return fail(error, HR_OUT_OF_MEMORY, "no memory for a source");
  source->recordings = (uint64_t)values[0].as.i64;
  source->samples = (uint64_t)values[1].as.i64;
  *out = source;
  return HR_OK;
}

static void source_close(hr_source* source) { free(source); }

/* What every sample holds. */
static const hr_field fields[] = {
    {.name = "x",
     .flags = HR_FIELD_NORMALIZE,
     .dtype = {kDLFloat, 32, 1},
     .ndim = 1,
     .shape = {kInputs},
     .axes = {"channel"},
     .channel_axis = 0},
    {.name = "y", .dtype = {kDLFloat, 32, 1}, .ndim = 1, .shape = {1}, .channel_axis = -1},
};

static uint32_t field_count(const hr_source* source) { return (void)source, sizeof fields / sizeof fields[0]; }

static hr_status field(const hr_source* source, uint32_t i, hr_field* out, hr_error* error) {
  if (i >= field_count(source)) return fail(error, HR_NOT_FOUND, "no such field");
  fill(out, &fields[i], sizeof fields[i]);
  return HR_OK;
}

static uint32_t split_count(const hr_source* source) { return (void)source, 1; }
static const char* split(const hr_source* source, uint32_t i) { return (void)source, i == 0 ? "all" : NULL; }
static uint64_t length(const hr_source* source, uint32_t i) { return (void)i, source->recordings * source->samples; }

/* Samples of one recording belong to one split. */
static uint64_t group_count(const hr_source* source, uint32_t i) { return (void)i, source->recordings; }

static hr_status group(const hr_source* source, uint32_t split_index, uint64_t i, hr_group* out, hr_error* error) {
  (void)split_index;
  if (i >= source->recordings) return fail(error, HR_NOT_FOUND, "no such group");
  const hr_group recording = {.name = "recording", .first = i * source->samples, .count = source->samples};
  fill(out, &recording, sizeof recording);
  return HR_OK;
}

static uint64_t file_count(const hr_source* source) { return (void)source, 0; }
static const char* file(const hr_source* source, uint64_t i) { return (void)source, (void)i, NULL; }
/* A read draws nothing from the sample's key, so the host may keep what it read. */
static uint32_t traits(const hr_source* source) { return (void)source, HR_SOURCE_NO_AUGMENT; }

static hr_status reader_open(hr_source* source, hr_reader** out, hr_error* error) {
  hr_reader* reader = malloc(sizeof *reader);
  if (reader == NULL) return fail(error, HR_OUT_OF_MEMORY, "no memory for a reader");
  reader->source = source;
  *out = reader;
  return HR_OK;
}

static void reader_close(hr_reader* reader) { free(reader); }

/* A pure function of the data, the index and the key: it may run on any thread, for any samples at once. A slot is NULL
 * where the host does not want the field. */
static hr_status read_samples(hr_reader* reader, const hr_read* request, hr_error* error) {
  float *x = request->fields[0].data, *y = request->fields[1].data;
  for (uint64_t i = 0; i < request->count; ++i) {
    if (request->index[i] >= length(reader->source, request->split)) return fail(error, HR_INTERNAL, "no such sample");
    const uint64_t key = hr_sample_key(/*seed=*/1, request->split, /*epoch=*/0, request->index[i]);
    double sum = 0.0;
    for (uint64_t channel = 0; channel < kInputs; ++channel) {
      const double value = 4.0 * hr_uniform_f64(hr_philox64(key, /*site=*/1, channel)) - 2.0;
      sum += sin(value) * (double)(channel + 1);
      if (x != NULL) x[i * kInputs + channel] = (float)value;
    }
    if (y != NULL) y[i] = (float)sum;
  }
  return HR_OK;
}

static const hr_datasource datasource = {
    .struct_size = sizeof(hr_datasource),
    .options = &options,
    .open = source_open,
    .close = source_close,
    .field_count = field_count,
    .field = field,
    .split_count = split_count,
    .split = split,
    .length = length,
    .group_count = group_count,
    .group = group,
    .file_count = file_count,
    .file = file,
    .reader_open = reader_open,
    .reader_close = reader_close,
    .read = read_samples,
    .traits = traits,
};

static const void* get_interface(const char* id) { return strcmp(id, HR_DATASOURCE) == 0 ? &datasource : NULL; }

/* The facts the host reads before it runs any of this. */
__attribute__((section(".note.headroom"), used, aligned(4))) static const struct {
  uint32_t name_size, descriptor_size, type;
  char name[12];
  hr_note note;
} note = {sizeof HR_NOTE_NAME,
          sizeof(hr_note),
          HR_NOTE_TYPE,
          HR_NOTE_NAME,
          {HR_MAGIC, HR_ABI_MAJOR, HR_ABI_MINOR, sizeof(hr_note), 0, 0, 0, "my_source", ""}};

extern __attribute__((visibility("default"))) const hr_plugin headroom_plugin;
const hr_plugin headroom_plugin = {
    .magic = HR_MAGIC,
    .abi_major = HR_ABI_MAJOR,
    .abi_minor = HR_ABI_MINOR,
    .struct_size = sizeof(hr_plugin),
    .id = "my_source",
    .version = "0.1",
    .summary = "Recordings of a known function",
    .get_interface = get_interface,
};
