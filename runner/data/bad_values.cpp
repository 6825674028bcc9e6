#include "data/bad_values.hpp"

#include <algorithm>
#include <sstream>

#include "data/standardise.hpp"
#include "headroom/sdk/finite.hpp"
#include "headroom/sdk/shape_text.hpp"

namespace headroom {

namespace {

// The position of an element in its sample, row-major.
std::vector<int64_t> index_of(const Field& field, int64_t element) {
  std::vector<int64_t> index(field.shape.size());
  for (size_t axis = field.shape.size(); axis-- > 0;) {
    index[axis] = element % field.shape[axis];
    element /= field.shape[axis];
  }
  return index;
}

template <class Real>
std::optional<BadValue> find_in(const Field& field, const DLTensor& tensor) {
  int64_t elements = 1;
  for (const int64_t extent : field.shape) elements *= extent;
  const std::span values(static_cast<const Real*>(tensor.data), static_cast<size_t>(tensor.shape[0] * elements));
  const auto found = sdk::first_not_finite(values);
  if (!found) return std::nullopt;
  const auto at = static_cast<int64_t>(*found);
  std::ostringstream text;
  text << "field '" << field.name << "' holds " << values[*found];
  if (!field.shape.empty()) text << " at " << sdk::shape_text(index_of(field, at % elements));
  return BadValue{static_cast<uint64_t>(at / elements), text.str()};
}

}  // namespace

std::optional<BadValue> find_bad_value(std::span<const Field> fields, std::span<const DLTensor> tensors) {
  std::optional<BadValue> first;
  for (size_t i = 0; i < fields.size(); ++i) {
    if (tensors[i].data == nullptr) continue;
    std::optional<BadValue> found;
    if (is_f32(fields[i])) found = find_in<float>(fields[i], tensors[i]);
    if (is_f64(fields[i])) found = find_in<double>(fields[i], tensors[i]);
    if (found && (!first || found->sample < first->sample)) first = std::move(found);
  }
  return first;
}

}  // namespace headroom
