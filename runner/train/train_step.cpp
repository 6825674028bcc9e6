#include "train/train_step.hpp"

#include <cmath>

#include "train/precision.hpp"
#include "train/state.hpp"

namespace headroom {

TrainStep::TrainStep(const Setup& setup, StepHooks hooks)
    : clipping_{setup.data.experiment.train.clip_value, setup.data.experiment.train.clip_norm},
      hooks_(std::move(hooks)),
      recompute_(*setup.model, setup.data.experiment.memory.recompute),
      retry_(setup.micro_batch(), setup.device, setup.advice(), hooks_.shortage),
      loss_scale_(scales_loss(setup.data.experiment.train.precision)),
      window_(*setup.model, setup.device, setup.dtype, retry_, setup.output_metrics(), setup.data.group.get()),
      optimizer_(setup.data.experiment.train.optimizer, setup.data.experiment.train.ema_decay,
                 setup.model->parameters(), setup.data.optimizer.get()),
      epoch_sums_(setup.model->metrics().size(), setup.device, setup.output_metrics()),
      interval_sums_(setup.model->metrics().size(), setup.device) {
  if (setup.data.group != nullptr) ranks_.emplace(setup, window_);
  // Recomputation costs time in every step, so it comes after all else.
  retry_.when_smallest([this] {
    const std::string kind = recompute_.add();
    return kind.empty() ? kind : "\"" + kind + "\" is computed again in backward from here on (memory.recompute)";
  });
}

// Begins the window again until it fits. What made it fit (a smaller micro-batch, recomputation) stays, unless others
// took the memory: that says nothing about the window.
TrainStep::Gradients TrainStep::accumulate(WindowBatches& batches, int64_t step) {
  // Parameters that are frozen until this step are trained from here on.
  window_.thaw(step);
  const int64_t micro_batch = retry_.size();
  const std::vector<std::string> recomputed = recompute_.kinds();
  if (ranks_) ranks_->begin();
  try {
    for (;;) {
      if (const auto gradients = try_to_accumulate(batches, step)) {
        retry_.succeeded();
        return *gradients;
      }
      window_.restore();
      batches.rewind();
    }
  } catch (const TakenByOthers& taken) {
    window_.restore();
    if (ranks_ && dynamic_cast<const TakenOnAnotherRank*>(&taken) == nullptr) ranks_->give_up();  // perhaps RankLost
    batches.rewind();
    retry_.micro_batch().restore(micro_batch);
    recompute_.restore(recomputed);
    throw;
  } catch (const RankLost&) {
    if (!prepared_) window_.restore();
    throw;
  }
}

void TrainStep::begin_anew(const std::optional<LossScale::State>& scale) {
  if (take_prepared()) window_.restore();
  ranks_->begin_anew();
  loss_scale_.restore(scale);
}

// nullopt: memory ran out where it could not be made good in place, or gradients overflowed float16. Either way the
// window begins again.
std::optional<TrainStep::Gradients> TrainStep::try_to_accumulate(WindowBatches& batches, int64_t step) {
  prepared_.reset();
  const char* doing = "the start of a window";
  Shortage shortage;
  if (!attempt_within_memory(shortage, doing, 0, [&] { window_.begin(loss_scale_.factor()); })) {
    retry_.after(shortage);
    return std::nullopt;
  }
  Gradients gradients;
  hooks_.phase(Phase::loading);
  while (const auto batch = batches.next(retry_)) {
    hooks_.phase(Phase::forward);
    if (!window_.add(*batch, step, hooks_.wants_outputs(*batch), batches.at_end())) return std::nullopt;
    gradients.samples += static_cast<int64_t>(batch->count());
    hooks_.batch_done();
    hooks_.phase(Phase::loading);
  }
  RankShares shares;
  if (ranks_) {
    shares = ranks_->add_up(gradients.samples);
    gradients.samples = shares.samples;
  }
  doing = "the optimizer's state";
  const bool fits = attempt_within_memory(shortage, doing, 0, [&] {
    const PhaseScope clipping(StepPhase::optimizer);
    if (ranks_) {
      ranks_->take_in(shares);
    } else {
      window_.note_reached(std::vector{window_.reached()});
    }
    optimizer_.make_state(window_.unreached());
    doing = "clipping";
    // Where one of these runs out of memory the window begins again, so nothing is divided twice.
    gradients.weight = window_.divide();
    gradients.norm = clip_gradients(window_.gradients(), clipping_, window_.norm());
    gradients.loss = window_.sums().loss();
  });
  // The gradients are those of all by now: where one of several begins again, all do.
  // Until the answer is there, another rank may have it already.
  if (ranks_ && fits) prepared_ = gradients;
  const bool is_complete = ranks_ ? ranks_->complete(fits) : fits;
  if (!is_complete) prepared_.reset();
  if (!fits) retry_.after(shortage);
  if (!is_complete) return std::nullopt;
  if (!overflows(gradients)) return gradients;
  prepared_.reset();
  if (ranks_) ranks_->begin_again();
  return std::nullopt;
}

// Only under a loss scale: a finite loss whose gradients are not finite. At the smallest scale train.on_nonfinite
// decides.
bool TrainStep::overflows(const Gradients& gradients) {
  if (std::isfinite(gradients.norm) || !std::isfinite(gradients.loss)) return false;
  const double factor = loss_scale_.factor();
  if (!loss_scale_.lower(gradients.weight)) return false;
  hooks_.loss_scale(factor, loss_scale_.factor());
  return true;
}

void TrainStep::apply(double lr, int64_t step) {
  loss_scale_.succeeded();
  {
    const PhaseScope updating(StepPhase::optimizer);
    optimizer_.step(lr, step, window_.unreached());
  }
  const PhaseScope measuring(StepPhase::metrics);
  epoch_sums_.add(window_.sums());
  interval_sums_.add(window_.sums());
}

void TrainStep::restore(const Position& position) {
  retry_.micro_batch().restore(position.micro_batch);
  recompute_.restore(position.recompute);
  loss_scale_.restore(position.loss_scale);
}

void TrainStep::note_in(Position& position) const {
  position.micro_batch = retry_.size();
  position.recompute = recompute_.kinds();
  position.loss_scale = loss_scale_.state();
}

}  // namespace headroom
