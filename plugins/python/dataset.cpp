#include "dataset.hpp"

#include <algorithm>

#include "headroom/random.h"
#include "installation.hpp"
#include "module_files.hpp"

namespace headroom::python {

namespace {

namespace fs = std::filesystem;

fs::path program_of(const sdk::Options& options) {
  const fs::path found =
      find_program(options.has("python") ? options.path("python") : fs::path(), "data.options.python");
  return found.empty() ? fs::path("python3") : found;  // of $PATH
}

// `file`, or every file below it where it is a folder.
void add_files(const fs::path& file, std::vector<fs::path>& files) {
  std::error_code problem;
  if (!fs::exists(file, problem)) sdk::invalid("data.options.files lists " + file.string() + ", which does not exist");
  if (!fs::is_directory(file, problem)) {
    files.push_back(file);
    return;
  }
  fs::recursive_directory_iterator entry(file, problem), end;
  for (; !problem && entry != end; entry.increment(problem)) {
    if (entry->is_regular_file(problem)) files.push_back(entry->path());
  }
  if (problem) {
    sdk::invalid("data.options.files lists " + file.string() + ", which cannot be read: " + problem.message());
  }
}

}  // namespace

sdk::OptionList PythonSource::options() {
  using namespace sdk;
  return {opt_path("file").required().help("the Python file that defines the dataset"),
          opt_string("class").required().help("a class of the file with __len__ and __getitem__, or a function that "
                                              "gives such a dataset"),
          opt_open_table("args").def("{}").help("what the class is called with, by name"),
          opt_open_table("val_args")
              .help("what it is called with for the validation samples; left out: a part of "
                    "the samples (data.split)"),
          opt_open_table("test_args").help("the same for the test samples; needs val_args"),
          opt_strings("names").def("[]").help("names of the items of a sample that is a tuple; of a dict those to "
                                              "take"),
          opt_tables("normalize", {opt_string("field").required().help("a floating-point field"),
                                   opt_i64("axis").def("-1").min("-1").help("of a sample: each place along it has its "
                                                                            "own statistics; -1: one for all")})
              .help("fields that the host standardises"),
          opt_bool("augments")
              .def("true")
              .help("whether a training sample differs from epoch to epoch; false: it is "
                    "drawn as in evaluation, and kept in the cache"),
          opt_paths("files").def("[]").help("files and folders that samples are read from: their content is part of "
                                            "the run's identity"),
          opt_f64("read_timeout_s")
              .def("300.0")
              .min("0.1")
              .max("86400.0")
              .help("a worker that gives no sample for so "
                    "long is replaced"),
          opt_path("python").help("a Python program or virtual environment; left out: the active one, else that of "
                                  "LibTorch, else python3")};
}

PythonSource::PythonSource(const sdk::Host& host, const sdk::Options& options)
    : augments_(options.boolean("augments")), splits_{"all"} {
  const std::vector<sdk::ModelFile> known = module_files(options.path("file"), "data.options.file");
  DatasetSettings settings{.program = program_of(options),
                           .file = known.front().path,
                           .class_name = options.string("class"),
                           .split_args = {options.open_table("args")},
                           .names = options.list_string("names"),
                           .most_read_s = options.f64("read_timeout_s")};
  if (options.has("test_args") && !options.has("val_args"))
    sdk::invalid("data.options.test_args needs val_args: a dataset has all of its splits, or the host divides it");
  if (options.has("val_args")) {
    splits_ = {"train", "val"};
    settings.split_args.push_back(options.open_table("val_args"));
  }
  if (options.has("test_args")) {
    splits_.emplace_back("test");
    settings.split_args.push_back(options.open_table("test_args"));
  }
  for (const sdk::ModelFile& file : known) files_.emplace_back(file.path);
  if (options.has("files")) {
    for (const fs::path& file : options.list_path("files")) add_files(file, files_);
  }
  workers_ = std::make_unique<DatasetWorkers>(host, std::move(settings));
  for (const fs::path& file : workers_->imported()) files_.push_back(file);
  std::ranges::sort(files_);
  files_.erase(std::unique(files_.begin(), files_.end()), files_.end());
  fields_ = workers_->fields();
  if (options.has("normalize")) normalize(options.tables("normalize"));
}

void PythonSource::normalize(const std::vector<sdk::Options>& wanted) {
  for (const sdk::Options& one : wanted) {
    const std::string name = one.string("field");
    const auto field = std::ranges::find(fields_, name, &sdk::Field::name);
    if (field == fields_.end()) {
      std::string names;
      for (const sdk::Field& known : fields_) names += (names.empty() ? "" : ", ") + known.name;
      sdk::invalid("data.options.normalize names the field '" + name + "'; the dataset has " + names);
    }
    const bool floating = field->dtype.code == kDLFloat || field->dtype.code == kDLBfloat;
    const int64_t axis = one.i64("axis"), axes = static_cast<int64_t>(field->shape.size());
    if (!floating) sdk::invalid("data.options.normalize names the field '" + name + "', which holds whole numbers");
    if (axis >= axes) {
      sdk::invalid("data.options.normalize has axis = " + std::to_string(axis) + " for the field '" + name +
                   "', which has " + std::to_string(axes) + " axes");
    }
    field->normalize = true;
    field->channel_axis = static_cast<int>(axis);
  }
}

void PythonSource::read(const sdk::ReadRequest& request) const {
  for (uint64_t i = 0; i < request.count(); ++i) {
    // In evaluation a sample draws the same in every epoch and every run.
    const bool draws = augments_ && request.augment();
    const uint64_t seed = draws ? request.key(i) : hr_sample_key(0, request.split(), 0, request.index(i));
    workers_->read(request, i, seed);
  }
}

}  // namespace headroom::python
