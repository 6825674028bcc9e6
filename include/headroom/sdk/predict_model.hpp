// The model's side of headroom.predict/1 (predict.hpp).
//
//   class Net {
//     static constexpr const char* target_field = "action";   // [steps, channels], what the prediction is of
//     static constexpr double ensemble_decay = 0.01;          // of [steps, channels]; may be left out
//     static constexpr uint64_t overlap = 2;                  // of pictures; may be left out
//     // Inputs alone: what outputs() declares, undefined where an output needs a target; the first prediction is
//     // [count, K, channels] or [count, K, colours, height, width].
//     std::vector<at::Tensor> predict(const Call& call, const Batch& batch);
//   };
#pragma once

#include <string>
#include <vector>

#include "headroom/model.hpp"
#include "headroom/sdk/predict.hpp"

namespace headroom::sdk {

template <class T>
class ModelSide {
 public:
  static void fill(hr_predict& table) {
    table.predict = predict;
    table.target_field = T::target_field;
    if constexpr (requires { T::ensemble_decay; }) table.ensemble_decay = T::ensemble_decay;
    if constexpr (requires { T::overlap; }) table.overlap = T::overlap;
  }

 private:
  static hr_status predict(hr_model* model, const hr_call* call, const hr_tensor* batch, const hr_tensor* outputs,
                           hr_error* error) noexcept {
    return detail::torch_guard(error, [&] {
      auto& box = *detail::ModelBox<T>::from(model);
      box.training.set(box.root(), false);
      const std::vector<at::Tensor> given = box.model->predict(
          Call(call, /*wants_outputs=*/true, /*wants_metrics=*/false, detail::recompute_kinds_of<T>()),
          Batch(box.fields, batch));
      if (given.size() != box.outputs.size()) {
        throw Error(HR_INTERNAL, "predict() returned " + std::to_string(given.size()) +
                                     " outputs; the model declares " + std::to_string(box.outputs.size()));
      }
      for (std::size_t i = 0; i < given.size(); ++i) {
        if (outputs[i] != nullptr && given[i].defined()) *reinterpret_cast<at::Tensor*>(outputs[i]) = given[i].detach();
      }
    });
  }
};

}  // namespace headroom::sdk
