// The numbers of a field, channel by channel.
#pragma once

#include "plugins/source.hpp"

namespace headroom {

inline bool is_f32(const Field& field) { return field.dtype.code == kDLFloat && field.dtype.bits == 32; }
inline bool is_f64(const Field& field) { return field.dtype.code == kDLFloat && field.dtype.bits == 64; }

// A batch of a field seen as [outer][channel][inner].
struct FieldView {
  int64_t outer = 1, channels = 1, inner = 1;
};

inline FieldView view_of(const Field& field, int64_t samples) {
  FieldView view{samples, 1, 1};
  for (int axis = 0; axis < static_cast<int>(field.shape.size()); ++axis) {
    const int64_t extent = field.shape[static_cast<size_t>(axis)];
    (axis < field.channel_axis ? view.outer : axis == field.channel_axis ? view.channels : view.inner) *= extent;
  }
  return view;
}

}  // namespace headroom
