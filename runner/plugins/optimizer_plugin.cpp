#include "plugins/optimizer_plugin.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "config/keys.hpp"
#include "config/literals.hpp"
#include "plugins/call.hpp"

namespace headroom {

namespace {

// Far beyond any use: a number that came out of an overflow must not be asked of the allocator.
constexpr uint64_t most_rule_elements = uint64_t{1} << 40;
constexpr size_t most_rule_buffers = 64;
constexpr const char* options_key = "train.optimizer_options";

std::string written_at(const std::string& written) { return written.empty() ? "" : written + ": "; }

[[noreturn]] void refuse_optimizer_name(const OptimizerSection& section, const std::string& reason) {
  const Key& key = *find_key("train.optimizer.name");
  const std::string near = nearest(section.name, key.choices);
  throw Error(Exit::bad_input, "config",
              written_at(section.place) + key.path + " is " + quote(section.name) + "; it must be " + allowed(key) +
                  (near.empty() ? "" : ": did you mean " + quote(near) + "?") + " (" + reason + ")");
}

// Without the component in front.
std::string without_component(const Error& problem) {
  const std::string text = problem.what();
  const size_t end = text.find("] ");
  return end == std::string::npos ? text : text.substr(end + 2);
}

const hr_optimizer* rule_table(const Library& library, const OptimizerSection& section) {
  const hr_optimizer* api = library.optimizer();
  if (api == nullptr) refuse_optimizer_name(section, "plugin '" + library.id() + "' offers no " HR_OPTIMIZER);
  return api;
}

// What needs() of a plugin tells, and what is wrong with it.
struct ToldNeeds {
  OptimizerPlugin::Needs needs;
  std::string flaw;
  bool fits = true;

  void add(const char* name, uint64_t elements) {
    const std::string text = name != nullptr ? name : "";
    const bool plain =
        !text.empty() && text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos;
    const bool known = std::ranges::find(needs.state, text, &OptimizerPlugin::Buffer::name) != needs.state.end();
    if (!plain || known) {
      flaw = "a buffer called '" + text + "', which is no new name of letters a to z, digits and _";
    } else if (elements == 0 || elements > most_rule_elements) {
      flaw = "a buffer '" + text + "' of " + std::to_string(elements) + " elements";
    } else if (needs.state.size() == most_rule_buffers) {
      flaw = "more than " + std::to_string(most_rule_buffers) + " buffers";
    } else {
      needs.state.push_back({text, elements});
    }
  }
};

int32_t hear_need(void* context, const char* name, uint64_t elements) noexcept {
  ToldNeeds& told = *static_cast<ToldNeeds*>(context);
  try {
    told.add(name, elements);
  } catch (...) {
    told.fits = false;
    return 1;
  }
  return told.flaw.empty() ? 0 : 1;
}

}  // namespace

std::optional<std::filesystem::path> find_optimizer(const OptimizerSection& section,
                                                    std::span<const std::filesystem::path> plugin_dirs) {
  if (!section.is_plugin()) return std::nullopt;
  try {
    return find_plugin(section.name, plugin_dirs);
  } catch (const Error& problem) {
    refuse_optimizer_name(section, without_component(problem));
  }
}

OptimizerPlugin::OptimizerPlugin(Library library, const TrainSection& train, Session& session)
    : library_(std::move(library)), api_(rule_table(library_, train.optimizer)) {
  table_ = to_option_table(api_->options, id());
  options_ = check_options(table_, &train.optimizer_options, options_key, "optimizer '" + id() + "'");
  const NativeOptions native(table_, options_);
  hr_error error = no_error();
  const hr_status status = call(id(), "create", api_->create, session.host_for(id()), native.values(), &rule_, &error);
  if (status == HR_INVALID_ARGUMENT) {
    const std::string reason(error.message, strnlen(error.message, sizeof error.message));
    throw Error(Exit::bad_input, "config",
                written_at(place(train.optimizer_options.source())) + options_key + ": optimizer '" + id() +
                    "' refuses them: " + (reason.empty() ? "the plugin gave no reason" : reason));
  }
  check(status, error, id(), "making the optimizer");
  if (rule_ == nullptr) throw Error(Exit::plugin, id(), "making the optimizer gave neither an optimizer nor an error");
}

OptimizerPlugin::~OptimizerPlugin() { call_quietly(id(), "destroy", api_->destroy, rule_); }

void OptimizerPlugin::require_precision(const std::string& precision) const {
  if (precision != "fp64" || (api_->flags & HR_OPTIMIZER_FP64) != 0) return;
  throw Error(Exit::bad_input, "train.precision",
              "optimizer '" + id() + "' does not work in \"fp64\": use \"fp32\", \"bf16\" or \"fp16\"");
}

OptimizerPlugin::Needs OptimizerPlugin::needs(const hr_trained& parameter) const {
  const std::string of = "'" + std::string(parameter.name) + "'";
  ToldNeeds told;
  hr_error error = no_error();
  check(call(id(), "needs", api_->needs, rule_, &parameter, &hear_need, &told, &told.needs.scratch, &error), error,
        id(), "asking what it needs for " + of);
  if (!told.fits) throw std::bad_alloc();
  if (told.flaw.empty() && told.needs.scratch > most_rule_elements)
    told.flaw = "scratch of " + std::to_string(told.needs.scratch) + " elements";
  if (!told.flaw.empty())
    throw Error(Exit::plugin, id(),
                "for parameter " + of + " it asks for " + told.flaw + "; this is a bug of the plugin");
  return std::move(told.needs);
}

void OptimizerPlugin::step(int64_t step, std::span<const hr_update> updates) const {
  const hr_optimizer_step native{sizeof(hr_optimizer_step), 0u, step, updates.size(), updates.data()};
  hr_error error = no_error();
  const hr_status status = call(id(), "step", api_->step, rule_, &native, &error);
  if (status == HR_OK) return;
  // Whatever it says: options and memory were settled before, so a step that fails is a bug.
  const std::string reason(error.message, strnlen(error.message, sizeof error.message));
  throw Error(Exit::plugin, id(),
              "optimizer step " + std::to_string(step + 1) +
                  " failed: " + (reason.empty() ? "status " + std::to_string(status) : reason) +
                  "; a step must not fail, since nothing can undo half of it: this is a bug of the plugin");
}

}  // namespace headroom
