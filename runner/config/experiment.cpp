#include "config/experiment.hpp"

#include <algorithm>
#include <functional>

#include "config/check_keys.hpp"
#include "config/document.hpp"
#include "config/fields.hpp"
#include "config/keys.hpp"
#include "config/literals.hpp"
#include "config/rescue.hpp"
#include "config/rules.hpp"
#include "config/sweep.hpp"
#include "config/values.hpp"

namespace headroom {

namespace fs = std::filesystem;

namespace {

toml::node* find(toml::table& document, std::string_view path) {
  toml::node* node = &document;
  while (!path.empty()) {
    const size_t dot = path.find('.');
    node = node->is_table() ? node->as_table()->get(path.substr(0, dot)) : nullptr;
    if (node == nullptr) return nullptr;
    path.remove_prefix(dot == std::string_view::npos ? path.size() : dot + 1);
  }
  return node;
}

[[noreturn]] void refuse_missing(const Key& key, toml::table& document, const fs::path& file) {
  toml::source_region at{};
  at.path = std::make_shared<const std::string>(file.string());
  const toml::node* section = find(document, key.section());
  // Only a section of a file: one that --set opened is no place to add a key.
  if (section && section->source().path && !is_override(*section->source().path)) at = section->source();
  refuse(at, key.path + " is missing; add " + std::string(key.name()) + " = \"...\" under [" +
                 std::string(key.section()) + "]");
}

// Sections that exist only when they are written.
void open_sections(Experiment& experiment, toml::table& document) {
  // Parts that a written split leaves out are 0, and not the defaults.
  if (find(document, "data.split")) experiment.data.split = SplitFractions{0, 0, 0, 0};
  if (find(document, "train.early_stop")) experiment.train.early_stop.emplace();
  if (find(document, "rescue")) experiment.rescue.emplace();
}

// Returns the keys that are set. Tables are moved out of `document`.
std::vector<std::string> read_fields(Experiment& experiment, toml::table& document) {
  std::vector<std::string> set;
  each_field(experiment, [&](std::string_view path, auto&& field) {
    const Key& key = *find_key(path);
    toml::node* node = find(document, path);
    if (node == nullptr) {
      if (key.required) refuse_missing(key, document, experiment.file);
      return;
    }
    if (!read_value(key, *node, field)) refuse_value(key, key.path, *node);
    set.push_back(key.path);
  });
  return set;
}

// Where the papers of an optimizer and all its implementations have another default than the table of keys.
void complete_optimizer(OptimizerSection& optimizer, const std::vector<std::string>& set) {
  const auto is_left_open = [&](std::string_view key) { return std::ranges::find(set, key) == set.end(); };
  if (optimizer.name == "lion" && is_left_open("train.optimizer.betas")) optimizer.beta2 = 0.99;
  if (optimizer.name == "lamb" && is_left_open("train.optimizer.eps")) optimizer.eps = 1e-6;
}

// For sentences of what is known with the plugin alone.
void place_optimizer(TrainSection& train, toml::table& document) {
  const toml::node* name = find(document, "train.optimizer.name");
  if (name == nullptr) return;
  train.optimizer.place = place(name->source());
  if (!find(document, "train.optimizer_options")) train.optimizer_options = empty_table_at(name->source());
}

// So that what is missing in [model.options] can be said of the place of [model].
void place_absent_options(Experiment& experiment, toml::table& document) {
  // [model] and [data] are there: each has a required key.
  if (!find(document, "model.options")) experiment.model_options = empty_table_at(find(document, "model")->source());
  if (!find(document, "data.options")) experiment.data_options = empty_table_at(find(document, "data")->source());
}

using OptionalCount = std::optional<int64_t>;

// Lays the first rungs of [rescue] over `document`: `taken` of them, or as many as it says itself. `rungs_from`: the
// same document, whose rungs are moved.
void lay_rungs(toml::table& document, toml::table&& rungs_from, OptionalCount taken) {
  toml::node* list = find(rungs_from, "rescue.rungs");
  std::vector<RescueRung> rungs;
  if (list && !read_value(*find_key("rescue.rungs"), *list, rungs)) return;  // read_fields() says what is wrong
  const toml::node* written = find(document, "rescue.taken");
  const int64_t said = written ? written->value_exact<int64_t>().value_or(0) : 0;
  const auto most = static_cast<int64_t>(rungs.size());
  if (said > most) {
    refuse(written->source(), "rescue.taken is " + std::to_string(said) + " but rescue.rungs has " +
                                  std::to_string(most) + "; it must not be larger");
  }
  const int64_t count = taken ? *taken : said;
  for (int64_t i = 0; i < count; ++i) lay_over(document, std::move(rungs[static_cast<size_t>(i)].set));
}

using ReadDocument = std::function<toml::table()>;

Experiment load_with_rungs(const fs::path& file, const ReadDocument& read, OptionalCount taken) {
  toml::table document = read();
  check_keys(document);
  if (find(document, "rescue")) lay_rungs(document, read(), taken);
  // Checked here, while [sweep] is still in the document: read_fields() moves it into the experiment.
  if (toml::table* sweep = document.get_as<toml::table>("sweep")) read_sweep(*sweep);
  Experiment experiment;
  experiment.file = experiment_path(file);
  open_sections(experiment, document);
  const std::vector<std::string> set = read_fields(experiment, document);
  complete_optimizer(experiment.train.optimizer, set);
  place_optimizer(experiment.train, document);
  place_absent_options(experiment, document);
  check_rules(experiment, document);
  // Last, because what is idle depends on the values of other keys.
  for (const std::string& key : set) {
    if (const std::string_view why = why_idle(experiment, key); !why.empty())
      experiment.inert.push_back({key, std::string(why)});
  }
  return experiment;
}

// Every rung is tried on, so that what is wrong with one is said now and not when it is needed.
void judge_rungs(RescueSection& rescue, const std::function<Experiment(int64_t taken)>& load) {
  if (rescue.rungs.empty()) return;
  // Each is read again: copied TOML nodes would lose their positions.
  Experiment without = load(0);
  for (size_t i = 0; i < rescue.rungs.size(); ++i) {
    RescueRung& rung = rescue.rungs[i];
    Experiment with = load(static_cast<int64_t>(i) + 1);
    rung.keeps_mathematics = keeps_mathematics(rung, without, with);
    if (rung.declared.value_or(false) && !rung.keeps_mathematics) {
      refuse(rung.set.source(),
             "a rung of [rescue] says that it keeps the mathematics, but what it sets changes them: " +
                 rung_text(rung) + "; write keeps_mathematics = false, or leave it out");
    }
    // Of rungs that were taken before the file was written, the file knows more than its keys show.
    if (rung.declared) rung.keeps_mathematics = *rung.declared;
    without = std::move(with);
  }
}

Experiment load(const fs::path& file, const ReadDocument& read) {
  Experiment experiment = load_with_rungs(file, read, std::nullopt);
  if (experiment.rescue) {
    judge_rungs(*experiment.rescue, [&](int64_t taken) { return load_with_rungs(file, read, taken); });
  }
  return experiment;
}

}  // namespace

bool OptimizerSection::is_plugin() const {
  const std::vector<std::string>& own = find_key("train.optimizer.name")->choices;
  return std::ranges::find(own, name) == own.end();
}

Experiment load_experiment(const fs::path& file, const std::vector<Override>& overrides) {
  return load(file, [&] { return read_document(file, overrides); });
}

Experiment load_keys(const std::vector<Override>& keys) {
  // The name is one for sentences about what is missing.
  return load("the keys given", [&] { return read_overrides(keys); });
}

Experiment load_trial(const fs::path& file, const std::vector<Override>& overrides,
                      const std::vector<SweptChoice>& choices) {
  return load(file, [&] {
    toml::table document = read_document(file, overrides);
    lay_trial(document, choices);
    return document;
  });
}

}  // namespace headroom
