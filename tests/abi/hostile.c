/* One plugin with one thing wrong, chosen by -D: what the loader must refuse, or survive. Everything else is in order.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "headroom/abi.h"
#include "headroom/convert.h"

#ifndef MAGIC
#define MAGIC HR_MAGIC
#endif
#ifndef MAJOR
#define MAJOR HR_ABI_MAJOR
#endif
#ifndef MINOR
#define MINOR HR_ABI_MINOR
#endif
#ifndef SIZE
#define SIZE sizeof(hr_plugin)
#endif
#ifndef FLAGS
#define FLAGS 0
#endif
#ifndef ID
#define ID "hostile"
#endif
#ifndef TAG
#define TAG NULL
#endif
#ifndef MIN_HOST
#define MIN_HOST 0
#endif
#ifndef INIT
#define INIT NULL
#endif
#ifndef GET_INTERFACE
#define GET_INTERFACE get_interface
#endif
#ifndef TABLE_SIZE
#define TABLE_SIZE sizeof(hr_datasource)
#endif
#ifndef READ_SLOT
#define READ_SLOT read_samples
#endif
#ifndef OPTIONS
#define OPTIONS NULL
#endif

/* Tells the test that code of a refused plugin ran. */
__attribute__((constructor)) static void run(void) { setenv("HEADROOM_TEST_PLUGIN_RAN", "yes", 1); }

hr_status init_fails(const hr_host* host, hr_error* error);
hr_status init_fails(const hr_host* host, hr_error* error) {
  (void)host;
  if (error != NULL) {
    error->code = HR_UNSUPPORTED;
    strcpy(error->message, "this processor lacks AVX-512, which the plugin needs");
  }
  return HR_UNSUPPORTED;
}

hr_status init_fails_silently(const hr_host* host, hr_error* error);
hr_status init_fails_silently(const hr_host* host, hr_error* error) { return (void)host, (void)error, 99; }

/* Fills the whole message and forgets the NUL. */
hr_status init_overflows(const hr_host* host, hr_error* error);
hr_status init_overflows(const hr_host* host, hr_error* error) {
  (void)host;
  if (error != NULL) memset(error->message, 'x', sizeof error->message);
  return HR_INTERNAL;
}

extern const hr_options endless;
static const hr_option endless_key[] = {{.name = "deeper", .type = HR_TABLE, .table = &endless}};
const hr_options endless = {sizeof(hr_options), sizeof(hr_option), 1, endless_key};

static const hr_option odd_key[] = {{.name = "colour", .type = 12}};
extern const hr_options odd_type;
const hr_options odd_type = {sizeof(hr_options), sizeof(hr_option), 1, odd_key};

static const hr_option twin_keys[] = {{.name = "twin", .type = HR_I64}, {.name = "twin", .type = HR_I64}};
extern const hr_options twins;
const hr_options twins = {sizeof(hr_options), sizeof(hr_option), 2, twin_keys};

static hr_status source_open(const hr_host* host, const hr_value* values, hr_source** out, hr_error* error) {
  return (void)host, (void)values, (void)out, (void)error, HR_OK; /* and no source */
}
static void source_close(hr_source* source) { (void)source; }
static uint32_t none(const hr_source* source) { return (void)source, 0; }
static hr_status field(const hr_source* source, uint32_t i, hr_field* out, hr_error* error) {
  return (void)source, (void)i, (void)out, (void)error, HR_INTERNAL;
}
static const char* split(const hr_source* source, uint32_t i) { return (void)source, (void)i, NULL; }
static uint64_t length(const hr_source* source, uint32_t i) { return (void)source, (void)i, 0; }
static hr_status group(const hr_source* source, uint32_t split, uint64_t i, hr_group* out, hr_error* error) {
  return (void)source, (void)split, (void)i, (void)out, (void)error, HR_INTERNAL;
}
static uint64_t file_count(const hr_source* source) { return (void)source, 0; }
static const char* split_file(const hr_source* source, uint64_t i) { return (void)source, (void)i, NULL; }
static hr_status reader_open(hr_source* source, hr_reader** out, hr_error* error) {
  return (void)source, (void)out, (void)error, HR_OK;
}
static void reader_close(hr_reader* reader) { (void)reader; }
hr_status read_samples(hr_reader* reader, const hr_read* request, hr_error* error);
hr_status read_samples(hr_reader* reader, const hr_read* request, hr_error* error) {
  return (void)reader, (void)request, (void)error, HR_OK;
}

#ifdef EXTERNAL
hr_status READ_SLOT(hr_reader* reader, const hr_read* request, hr_error* error);
#endif

/* A table of a release to come is longer; what follows is not ours to know. */
static const struct longer_datasource {
  hr_datasource table;
  const void* later[8];
} datasource = {.table = {.struct_size = TABLE_SIZE,
                          .options = OPTIONS,
                          .open = source_open,
                          .close = source_close,
                          .field_count = none,
                          .field = field,
                          .split_count = none,
                          .split = split,
                          .length = length,
                          .group_count = length,
                          .group = group,
                          .file_count = file_count,
                          .file = split_file,
                          .reader_open = reader_open,
                          .reader_close = reader_close,
                          .read = READ_SLOT}};

#ifdef CONVERT
static hr_status list_nothing(const hr_host* host, const hr_value* options, const char* path,
                              int32_t (*visit)(void* context, const char* piece, const char* file), void* context,
                              hr_error* error) {
  (void)host, (void)options, (void)path, (void)error;
  visit(context, NULL, "a.hdf5");
  return HR_OK;
}
static hr_status write_nothing(const hr_host* host, const hr_value* options, const char* path, const char* piece,
                               const char* file, hr_error* error) {
  return (void)host, (void)options, (void)path, (void)piece, (void)file, (void)error, HR_INTERNAL;
}
static const hr_convert convert = {sizeof(hr_convert), 0, NULL, list_nothing, write_nothing};
#endif

const void* get_interface(const char* id);
const void* get_interface(const char* id) {
#ifdef CONVERT
  if (strcmp(id, HR_CONVERT) == 0) return &convert;
#endif
  return strcmp(id, HR_DATASOURCE) == 0 ? &datasource : NULL;
}

#ifndef NO_NOTE
#ifndef NOTE_MAGIC
#define NOTE_MAGIC MAGIC
#endif
#ifndef NOTE_SIZE
#define NOTE_SIZE sizeof(hr_note)
#endif
#ifndef NOTE_TAG
#define NOTE_TAG ""
#endif
__attribute__((section(".note.headroom"), used, aligned(4))) static const struct {
  uint32_t name_size, descriptor_size, type;
  char name[12];
  hr_note note;
} note = {sizeof HR_NOTE_NAME,
          sizeof(hr_note),
          HR_NOTE_TYPE,
          HR_NOTE_NAME,
          {NOTE_MAGIC, MAJOR, MINOR, NOTE_SIZE, FLAGS, MIN_HOST, 0, "hostile", NOTE_TAG}};
#endif

struct longer_plugin {
  hr_plugin plugin;
  const void* later[8];
};

#ifndef SYMBOL
#define SYMBOL headroom_plugin
#endif
extern __attribute__((visibility("default"))) const struct longer_plugin SYMBOL;
const struct longer_plugin SYMBOL = {.plugin = {.magic = MAGIC,
                                                .abi_major = MAJOR,
                                                .abi_minor = MINOR,
                                                .struct_size = SIZE,
                                                .flags = FLAGS,
                                                .id = ID,
                                                .version = "1.0",
                                                .summary = "one thing is wrong",
                                                .torch_tag = TAG,
                                                .min_host_minor = MIN_HOST,
                                                .init = INIT,
                                                .get_interface = GET_INTERFACE}};
