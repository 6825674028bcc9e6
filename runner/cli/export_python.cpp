#include "cli/export_python.hpp"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <system_error>

#include "cli/export_converter.hpp"
#include "cli/trainer_program.hpp"
#include "error.hpp"
#include "memory/tool_output.hpp"
#include "own_suffix.hpp"
#include "record/output_file.hpp"

namespace headroom {

namespace {

namespace fs = std::filesystem;

constexpr int no_torch = 17, no_onnx = 18;  // exit codes of the script

// A file that becomes `file`, or that it is made from; removed with this object.
class PartialFile {
 public:
  explicit PartialFile(const fs::path& file) : path_(partial_beside(file)) {}
  ~PartialFile() {
    std::error_code gone;
    fs::remove(path_, gone);
  }
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::string absent(const std::string& format, const char* missing) {
  const std::string packages = format == "onnx" ? "torch onnx" : "torch";
  return "--format " + format + " is written by python3 with " + (format == "onnx" ? "torch and onnx" : "torch") +
         ", and " + missing + " is not there: install it (python3 -m venv .venv && .venv/bin/pip install " + packages +
         " && . .venv/bin/activate), and run the same command again; or export --format torchscript";
}

// The line that the script writes; {} where it has none to write.
nlohmann::json converted(const std::string& format, const std::vector<std::string>& files) {
  std::vector<std::string> words = {"python3", "-c", export_converter, format};
  words.insert(words.end(), files.begin(), files.end());
  ToolOutput python(words, "export", absent(format, "python3"));
  const auto line = python.line();
  const int code = python.wait();
  if (code == no_torch || code == no_onnx)
    throw Error(Exit::bad_input, "export", absent(format, code == no_torch ? "torch" : "onnx"));
  nlohmann::json answer = line ? nlohmann::json::parse(*line, nullptr, /*allow_exceptions=*/false) : nlohmann::json();
  if (code == 0 && (files.empty() || answer.is_object())) return answer;
  throw Error(Exit::bad_input, "export",
              "the model cannot be written as " + format + ": " + python.complaint() +
                  "; export --format torchscript, which LibTorch and PyTorch run as it is");
}

// As this command was given, for the trainer.
std::vector<std::string> torchscript_words(const ExportWords& words, const CommandLine& line, const fs::path& program) {
  std::vector<std::string> result = {"export",       words.run,        "--format", "torchscript",
                                     "--checkpoint", words.checkpoint, "--out",    program.string()};
  append_words(result, {}, line.plugin_dirs);
  return result;
}

}  // namespace

int export_through_python(const ExportWords& words, const CommandLine& line) {
  converted(words.format, {});  // before the model is traced, which takes a while
  const PartialFile program(words.out), made(words.out);
  int exit_code = 0;
  ask_trainer(torchscript_words(words, line, program.path()), exit_code);
  if (exit_code != 0) return exit_code;
  const nlohmann::json answer = converted(words.format, {program.path().string(), made.path().string()});
  std::error_code error;
  fs::rename(made.path(), words.out, error);
  if (error) throw cannot_write(words.out, error.value());
  std::printf("wrote %s: for %s; off by %.1e of the largest value at most\n", words.out.c_str(),
              answer.value("samples", "1") == "any" ? "any number of samples" : "one sample at a time",
              answer.value("difference", 0.0));
  return 0;
}

}  // namespace headroom
