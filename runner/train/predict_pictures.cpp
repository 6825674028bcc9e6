#include "train/predict_pictures.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "record/png.hpp"
#include "record/progress.hpp"
#include "record/run_folder.hpp"
#include "train/chunks.hpp"
#include "train/picture.hpp"
#include "train/predict_input.hpp"
#include "train/predict_pass.hpp"

namespace headroom {

namespace {

constexpr uint64_t most_shown = 4;

const Field* target_of(const Setup& setup) {
  const auto found = std::ranges::find(setup.source->fields(), setup.model->predictor()->target_field, &Field::name);
  return found == setup.source->fields().end() ? nullptr : &*found;
}

// Another field of pictures as large as the target's: what there was before the model.
const Field* before_of(const Setup& setup, const Field& target) {
  for (const Field& field : setup.source->fields()) {
    if (field.name != target.name && field.shape == target.shape && field.dtype.code == target.dtype.code &&
        field.dtype.bits == target.dtype.bits)
      return &field;
  }
  return nullptr;
}

// As in a file: [height, width, colours].
at::Tensor pixels_of_field(const at::Tensor& picture) {
  if (picture.scalar_type() == at::kByte) return picture.permute({1, 2, 0}).contiguous();
  return pixels_of(picture, {});
}

// Of 8-bit pictures, in dB.
double psnr(const at::Tensor& pixels, const at::Tensor& target) {
  const at::Tensor error = pixels.to(at::kDouble) - target.to(at::kDouble);
  return 10.0 * std::log10(255.0 * 255.0 / error.square().mean().item<double>());
}

// Takes answers in the order of their starts, and gives every step's picture as soon as no other answer can reach it.
class Frames {
 public:
  Frames(const Setup& setup, const std::filesystem::path& folder, uint64_t steps, uint64_t horizon)
      : target_(*target_of(setup)),
        before_(before_of(setup, target_)),
        target_index_(static_cast<size_t>(&target_ - setup.source->fields().data())),
        before_index_(before_ != nullptr ? static_cast<size_t>(before_ - setup.source->fields().data()) : 0),
        model_(setup.model->id()),
        folder_(folder),
        steps_(steps),
        horizon_(horizon) {
    told.before = before_ != nullptr ? before_->name : "";
    const uint64_t shown = std::min(steps, most_shown);
    for (uint64_t i = 0; i < shown; ++i) shown_.push_back((2 * i + 1) * steps / (2 * shown));
  }

  // `prediction`: [horizon, colours, height, width] from `start` on; `fields`: of that sample alone.
  void take(uint64_t start, const at::Tensor& prediction, const std::vector<at::Tensor>& fields) {
    const std::vector<int64_t> wanted(target_.shape.begin(), target_.shape.end());
    if (prediction.sizes() != at::IntArrayRef(wanted)) {
      throw Error(Exit::plugin, model_,
                  "its prediction has the shape " + c10::str(prediction.sizes()) + ", the field '" + target_.name +
                      "' " + c10::str(at::IntArrayRef(wanted)));
    }
    finish(start);
    for (uint64_t ahead = 0; ahead < horizon_ && start + ahead < steps_; ++ahead) {
      Frame& frame = open_[start + ahead];
      const auto row = static_cast<int64_t>(ahead);
      const at::Tensor picture = prediction[row].to(at::kFloat);
      frame.sum = frame.answers++ == 0 ? picture.clone() : frame.sum + picture;
      frame.target = pixels_of_field(fields[target_index_][0][row]);
      if (before_ != nullptr) frame.before = pixels_of_field(fields[before_index_][0][row]);
    }
  }

  // Those before `step`, at the end all.
  void finish(uint64_t step) {
    while (!open_.empty() && open_.begin()->first < step) {
      write(open_.begin()->first, open_.begin()->second);
      open_.erase(open_.begin());
    }
  }

  PredictedPictures told;

 private:
  struct Frame {
    at::Tensor sum, target, before;
    int64_t answers = 0;
  };

  void write(uint64_t step, const Frame& frame) {
    const at::Tensor pixels = pixels_of(frame.sum / static_cast<double>(frame.answers), {});
    char name[32];
    std::snprintf(name, sizeof name, "%06llu.png", static_cast<unsigned long long>(step));
    write_file_atomically(folder_ / name,
                          png_bytes({pixels.const_data_ptr<uint8_t>(), static_cast<size_t>(pixels.numel())},
                                    static_cast<uint32_t>(pixels.size(1)), static_cast<uint32_t>(pixels.size(0)),
                                    static_cast<uint32_t>(pixels.size(2))));
    PictureStep& known = told.steps.emplace_back();
    known.psnr_db = psnr(pixels, frame.target);
    if (before_ != nullptr) known.before_psnr_db = psnr(frame.before, frame.target);
    if (std::ranges::count(shown_, step) == 0) return;
    const auto shown = [](const at::Tensor& of) {
      const auto picture = of.defined() ? picture_of(of) : std::nullopt;
      return picture ? shown_picture(*picture, {0, 255}) : std::string();
    };
    told.shown.push_back({step, shown(frame.before), shown(pixels), shown(frame.target)});
  }

  const Field &target_, *before_;
  size_t target_index_, before_index_;
  std::string model_;
  std::filesystem::path folder_;
  uint64_t steps_, horizon_;
  std::vector<uint64_t> shown_;
  std::map<uint64_t, Frame> open_;
};

}  // namespace

bool predicts_pictures(const Setup& setup) {
  const Field* target = target_of(setup);
  return target != nullptr && target->shape.size() == 4 && (target->shape[1] == 1 || target->shape[1] == 3);
}

std::optional<PredictedPictures> predict_pictures(const Setup& setup, std::unique_ptr<Recording> recording,
                                                  const Normalizer& normalizer, int64_t trained_steps,
                                                  const std::filesystem::path& folder) {
  const hr_predict& predictor = *setup.model->predictor();
  const uint64_t steps = recording->steps(), horizon = static_cast<uint64_t>(target_of(setup)->shape[0]);
  const std::vector<uint64_t> starts =
      question_starts(steps, horizon, HR_HAS(&predictor, overlap) ? predictor.overlap : 0);
  const auto input = recorded_steps(setup, std::move(recording), normalizer, starts);
  const auto output = static_cast<size_t>(std::ranges::find(setup.model->outputs(), HR_PREDICTION, &OutputInfo::role) -
                                          setup.model->outputs().begin());
  const auto target = static_cast<size_t>(target_of(setup) - setup.source->fields().data());
  Frames frames(setup, folder, steps, horizon);
  Progress progress(terminal_of(2), /*log_every=*/1);
  progress.begin("predict", "clips", static_cast<int64_t>(starts.size()), 0);
  int64_t asked = 0;
  const bool done =
      run_pass(setup, *input,
               {.ask =
                    [&](const MicroBatchTensors& tensors) {
                      Outputs fields = tensors.fields;
                      fields[target].reset();  // what is to be predicted is not shown
                      return setup.model->predict(trained_steps, tensors.keys, fields);
                    },
                .take =
                    [&](const Batch& batch, int64_t first, int64_t count, const Outputs& outputs) {
                      for (int64_t i = 0; i < count; ++i) {
                        const MicroBatchTensors sample(batch, first + i, 1, at::kCPU, at::kFloat);
                        frames.take(batch.index[static_cast<size_t>(first + i)], outputs[output][i], sample.fields);
                        progress.update(++asked, {});
                      }
                    }});
  if (!done) return std::nullopt;
  frames.finish(steps);
  progress.end("");
  frames.told.trained_steps = trained_steps;
  frames.told.horizon = horizon;
  return std::move(frames.told);
}

}  // namespace headroom
