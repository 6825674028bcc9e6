/* A trained model in a C program: what it takes and gives, or its outputs for samples from files.
 *
 *   infer MODEL                   prints inputs and outputs; MODEL is a run's folder or a file of `headroom export`
 *   infer MODEL SAMPLES FOLDER    reads FOLDER/<input>.bin of each input, SAMPLES samples of plain numbers one after the other, in the
 *                                 units that were measured; an input without such a file is left out; writes FOLDER/<output>.out
 *
 * $HEADROOM_PLUGIN_PATH names the folder of the model's plugin where that does not lie beside libheadroom_infer. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/infer.h"

static void print_array(const char* name, DLDataType dtype, int32_t ndim, const int64_t* shape, const char* unit) {
  printf("  %s %s%d [samples", name, dtype.code == kDLFloat ? "float" : dtype.code == kDLInt ? "int" : "uint", dtype.bits);
  for (int32_t axis = 0; axis < ndim; ++axis) printf(", %" PRId64, shape[axis]);
  printf("]%s%s\n", unit != NULL ? " " : "", unit != NULL ? unit : "");
}

static void print_model(const hr_infer* model) {
  puts("inputs");
  for (uint32_t i = 0; i < hr_infer_input_count(model); ++i) {
    const hr_field* field = hr_infer_input(model, i);
    print_array(field->name, field->dtype, field->ndim, field->shape, field->unit);
    if (!hr_infer_needs(model, i)) puts("    is predicted, and may be left out");
  }
  puts("outputs");
  for (uint32_t i = 0; i < hr_infer_output_count(model); ++i) {
    const hr_infer_output* output = hr_infer_output_at(model, i);
    if (!output->given) continue;
    const char* unit = output->field != NULL ? output->field->unit : output->unit;
    print_array(output->name, output->dtype, output->ndim, output->shape, unit);
  }
}

static size_t bytes_of(const DLTensor* tensor) {
  size_t bytes = tensor->dtype.bits / 8;
  for (int32_t axis = 0; axis < tensor->ndim; ++axis) bytes *= (size_t)tensor->shape[axis];
  return bytes;
}

static FILE* open_in(const char* folder, const char* name, const char* ending, const char* mode) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s.%s", folder, name, ending);
  return fopen(path, mode);
}

/* 0: the file has another length. Where there is none, `tensor` stays without data. */
static int read_input(DLTensor* tensor, const char* folder, const char* name) {
  FILE* file = open_in(folder, name, "bin", "rb");
  if (file == NULL) return 1;
  const size_t bytes = bytes_of(tensor);
  tensor->data = malloc(bytes);
  const int whole = tensor->data != NULL && fread(tensor->data, 1, bytes, file) == bytes && fgetc(file) == EOF;
  fclose(file);
  return whole;
}

static int write_output(const DLTensor* tensor, const char* folder, const char* name) {
  if (tensor->data == NULL) return 1;
  FILE* file = open_in(folder, name, "out", "wb");
  if (file == NULL) return 0;
  const size_t bytes = bytes_of(tensor);
  const int written = fwrite(tensor->data, 1, bytes, file) == bytes;
  return fclose(file) == 0 && written;
}

static int run(hr_infer* model, int64_t samples, const char* folder) {
  const uint32_t count = hr_infer_input_count(model);
  DLTensor* inputs = calloc(count, sizeof *inputs);
  int64_t(*shapes)[HR_MAX_DIMS + 1] = calloc(count, sizeof *shapes);
  if (inputs == NULL || shapes == NULL) return 1;
  int failed = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const hr_field* field = hr_infer_input(model, i);
    shapes[i][0] = samples;
    memcpy(shapes[i] + 1, field->shape, sizeof field->shape);
    inputs[i].device.device_type = kDLCPU;
    inputs[i].dtype = field->dtype;
    inputs[i].ndim = field->ndim + 1;
    inputs[i].shape = shapes[i];
    if (read_input(&inputs[i], folder, field->name)) continue;
    fprintf(stderr, "%s/%s.bin: it must hold %zu bytes\n", folder, field->name, bytes_of(&inputs[i]));
    failed = 1;
  }
  hr_error error = {.struct_size = sizeof error};
  const DLTensor* outputs = NULL;
  if (!failed && hr_infer_run(model, inputs, &outputs, &error) != HR_OK) {
    fprintf(stderr, "%s\n", error.message);
    failed = 1;
  }
  for (uint32_t i = 0; !failed && i < hr_infer_output_count(model); ++i) {
    if (write_output(&outputs[i], folder, hr_infer_output_at(model, i)->name)) continue;
    fprintf(stderr, "%s cannot be written\n", folder);
    failed = 1;
  }
  for (uint32_t i = 0; i < count; ++i) free(inputs[i].data);
  free(shapes);
  free(inputs);
  return failed;
}

int main(int argc, char** argv) {
  const long long samples = argc == 4 ? atoll(argv[2]) : 0;
  if (argc != 2 && (argc != 4 || samples < 1)) {
    fprintf(stderr, "usage: %s MODEL [SAMPLES FOLDER]\n", argv[0]);
    return 2;
  }
  hr_infer* model = NULL;
  hr_error error = {.struct_size = sizeof error};
  if (hr_infer_open(argv[1], NULL, &model, &error) != HR_OK) {
    fprintf(stderr, "%s\n", error.message);
    return 1;
  }
  int failed = 0;
  if (argc == 2) {
    print_model(model);
  } else {
    failed = run(model, samples, argv[3]);
  }
  hr_infer_close(model);
  return failed;
}
