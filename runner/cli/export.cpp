#include <cstdio>
#include <system_error>

#include "cli/commands.hpp"
#include "cli/export_python.hpp"
#include "cli/trainer_program.hpp"
#include "error.hpp"
#include "memory/readable.hpp"
#include "record/trained_model.hpp"

namespace headroom {

namespace {

namespace fs = std::filesystem;

void write_weights(const ExportWords& words) {
  const TrainedModel model = TrainedModel::of_run(words.run, words.checkpoint);
  model.write(words.out);
  int64_t bytes = 0;
  for (const TensorBytes& tensor : model.weights) bytes += static_cast<int64_t>(tensor.data.size());
  std::printf("wrote %s: %zu tensors, %s, of step %lld\n", words.out.c_str(), model.weights.size(),
              size_text(bytes).c_str(), static_cast<long long>(model.step));
  if (!model.fields.is_array()) {
    std::fprintf(stderr,
                 "%s was saved by an earlier build, which did not store the fields that the model takes: the file's "
                 "metadata lacks 'fields' and 'outputs', and hr_infer_open() cannot open it\n",
                 model.place.c_str());
  }
}

}  // namespace

void require_exportable(const ExportWords& words) {
  std::error_code error;
  if (fs::is_regular_file(words.out, error) || fs::is_directory(words.out, error))
    throw Error(Exit::bad_input, "export", words.out + " exists already; name another file with --out");
}

int export_in_front(const ExportWords& words, const CommandLine& line) {
  require_one_process("export");
  require_exportable(words);
  if (words.format == "torchscript") return run_trainer(line.arguments);
  if (words.format == "onnx" || words.format == "pt2") return export_through_python(words, line);
  write_weights(words);
  return 0;
}

}  // namespace headroom
