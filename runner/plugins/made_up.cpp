#include "plugins/made_up.hpp"

#include <algorithm>
#include <cmath>
#include <exception>

#include "error.hpp"
#include "headroom/sdk/draws.hpp"
#include "plugins/call.hpp"
#include "plugins/field_checks.hpp"

namespace headroom {

namespace {

constexpr int64_t open_size = 8;
constexpr std::size_t most_fields = 1024;

bool is_floating(const Field& field) { return field.dtype.code == kDLFloat || field.dtype.code == kDLBfloat; }

// Bounds that the dtype can hold: 0 and 1 of integers and of bool.
bool fits(const Field& field, double min, double max) {
  if (is_floating(field) || min == max) return true;
  if (std::ceil(min) > std::floor(max)) return false;  // no integer lies between them
  if (field.dtype.code == kDLBool) return min >= 0.0 && max <= 1.0;
  const bool has_sign = field.dtype.code == kDLInt;
  const double end = std::ldexp(1.0, field.dtype.bits - (has_sign ? 1 : 0));
  return min >= (has_sign ? -end : 0.0) && max < end;
}

// Takes the fields one by one while the plugin names them.
class Inputs {
 public:
  explicit Inputs(std::string id) : id_(std::move(id)) {}

  // Nothing may be thrown through the plugin.
  static int32_t visit(void* context, const hr_input* input) noexcept {
    auto& inputs = *static_cast<Inputs*>(context);
    try {
      inputs.add(input);
      return 0;
    } catch (...) {
      inputs.problem_ = std::current_exception();
      return 1;
    }
  }

  std::vector<MadeUpField> take() {
    if (problem_) std::rethrow_exception(problem_);
    if (fields_.empty()) refuse("it names no field");
    return std::move(fields_);
  }

 private:
  [[noreturn]] void refuse(const std::string& sentence) const {
    throw Error(Exit::plugin, id_, "the model describes its inputs inconsistently: " + sentence);
  }

  void add(const hr_input* input) {
    if (fields_.size() == most_fields) refuse("it names more than 1024 fields");
    if (input == nullptr || !HR_HAS(input, max) || input->field == nullptr) refuse("an input has no field");
    hr_field native = sdk::load(*input->field);
    for (int32_t axis = 0; axis < std::min<int32_t>(native.ndim, HR_MAX_DIMS); ++axis) {
      if (native.shape[axis] == HR_ANY_SIZE) native.shape[axis] = open_size;
    }
    if (const std::string flaw = flaw_of_field(native, static_cast<uint32_t>(fields_.size())); !flaw.empty())
      refuse(flaw);
    const MadeUpField made{Field::from(native), input->min, input->max};
    const std::string& name = made.field.name;
    if (std::ranges::any_of(fields_, [&](const MadeUpField& known) { return known.field.name == name; }))
      refuse("it names field '" + name + "' twice");
    if (!std::isfinite(made.min) || !std::isfinite(made.max) || made.min > made.max ||
        !fits(made.field, made.min, made.max)) {
      refuse("the values of field '" + name + "' lie between " + std::to_string(made.min) + " and " +
             std::to_string(made.max) + ", where " + dtype_name(made.field.dtype) + " has none");
    }
    fields_.push_back(made);
  }

  std::string id_;
  std::vector<MadeUpField> fields_;
  std::exception_ptr problem_;
};

}  // namespace

double MadeUpField::value(uint64_t key, uint64_t site, uint64_t i) const {
  const bool has_bounds = min < max;
  if (is_floating(field)) {
    return has_bounds ? min + (max - min) * sdk::uniform(key, site, i) : sdk::normal(key, site, i);
  }
  const double first = has_bounds ? std::ceil(min) : 0.0, last = has_bounds ? std::floor(max) : 1.0;
  // Rounding may reach the end of a wide range.
  return std::min(last, first + std::floor((last - first + 1.0) * sdk::uniform(key, site, i)));
}

std::vector<MadeUpField> made_up_fields(const hr_inputs& api, const std::string& id, const hr_value* options) {
  Inputs inputs(id);
  hr_error error = no_error();
  const hr_status status = call(id, "list", api.list, options, &Inputs::visit, static_cast<void*>(&inputs), &error);
  check(status, error, id, "describing its inputs");
  return inputs.take();
}

}  // namespace headroom
