/* A datasource in plain C11, against the bare ABI: a sine with a phase per sample. tests/abi also builds it with the
 * frozen headers of 1.0 and with those of a made-up 1.1. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/abi.h"

enum { kPoints = 16 };

struct hr_source {
  uint64_t samples;
};

struct hr_reader {
  const hr_source* source;
};

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

static const hr_option keys[] = {
    {.name = "samples", .type = HR_I64, .default_value = "64", .min = "1", .max = "1000000", .help = "samples in all"},
};
static const hr_options options = {sizeof(hr_options), sizeof(hr_option), 1, keys};

static hr_status source_open(const hr_host* host, const hr_value* values, hr_source** out, hr_error* error) {
  (void)host;
  hr_source* source = malloc(sizeof *source);
  if (source == NULL) return fail(error, HR_OUT_OF_MEMORY, "no memory for a source");
  source->samples = (uint64_t)values[0].as.i64;
  *out = source;
  return HR_OK;
}

static void source_close(hr_source* source) { free(source); }
static uint32_t field_count(const hr_source* source) { return (void)source, 1; }

static hr_status field(const hr_source* source, uint32_t i, hr_field* out, hr_error* error) {
  (void)source;
  if (i != 0) return fail(error, HR_NOT_FOUND, "there is one field");
  const hr_field wave = {.name = "wave",
                         .dtype = {kDLFloat, 32, 1},
                         .ndim = 1,
                         .shape = {kPoints},
                         .axes = {"time"},
                         .unit = "V",
                         .sample_rate_hz = 16.0,
                         .channel_axis = -1};
  fill(out, &wave, sizeof wave);
  return HR_OK;
}

static uint32_t split_count(const hr_source* source) { return (void)source, 1; }
static const char* split(const hr_source* source, uint32_t i) { return (void)source, i == 0 ? "all" : NULL; }
static uint64_t length(const hr_source* source, uint32_t i) { return (void)i, source->samples; }
static uint64_t group_count(const hr_source* source, uint32_t i) { return (void)source, (void)i, 1; }

static hr_status group(const hr_source* source, uint32_t split, uint64_t i, hr_group* out, hr_error* error) {
  (void)split;
  if (i != 0) return fail(error, HR_NOT_FOUND, "there is one group");
  const hr_group all = {.name = "all", .first = 0, .count = source->samples};
  fill(out, &all, sizeof all);
  return HR_OK;
}

static uint64_t file_count(const hr_source* source) { return (void)source, 0; }
static const char* file(const hr_source* source, uint64_t i) { return (void)source, (void)i, NULL; }

static hr_status reader_open(hr_source* source, hr_reader** out, hr_error* error) {
  hr_reader* reader = malloc(sizeof *reader);
  if (reader == NULL) return fail(error, HR_OUT_OF_MEMORY, "no memory for a reader");
  reader->source = source;
  *out = reader;
  return HR_OK;
}

static void reader_close(hr_reader* reader) { free(reader); }

static hr_status read_samples(hr_reader* reader, const hr_read* request, hr_error* error) {
  float* wave = request->fields[0].data;
  for (uint64_t i = 0; i < request->count; ++i) {
    if (request->index[i] >= reader->source->samples)
      return fail(error, HR_INTERNAL, "a sample beyond the last one was asked for");
    for (int t = 0; wave != NULL && t < kPoints; ++t) {
      *wave++ = (float)sin(6.283185307179586 * ((double)t / kPoints + (double)request->index[i] / 64.0));
    }
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
          {HR_MAGIC, HR_ABI_MAJOR, HR_ABI_MINOR, sizeof(hr_note), 0, 0, 0, "c_source", ""}};

extern __attribute__((visibility("default"))) const hr_plugin headroom_plugin;
const hr_plugin headroom_plugin = {
    .magic = HR_MAGIC,
    .abi_major = HR_ABI_MAJOR,
    .abi_minor = HR_ABI_MINOR,
    .struct_size = sizeof(hr_plugin),
    .id = "c_source",
    .version = "1.0",
    .summary = "A sine in plain C11: the bare ABI",
    .get_interface = get_interface,
};
