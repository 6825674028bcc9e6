#include "train/shortage.hpp"

#include <c10/util/Exception.h>
#include <new>
#include <vector>

#include "memory/budget.hpp"
#include "memory/readable.hpp"

namespace headroom {

namespace {

std::string listed(const std::vector<std::string>& items) {
  std::string text;
  for (size_t i = 0; i < items.size(); ++i) text += (i == 0 ? "" : "; ") + std::to_string(i + 1) + ") " + items[i];
  return text;
}

}  // namespace

Shortage Shortage::now(const char* doing, int64_t micro_batch) {
  // The figures of the refusal: by now the tensors of the attempt are gone.
  const Refusal refusal = take_refusal();
  return {doing, refusal.bytes, refusal.promised_bytes, memory_limit(), micro_batch, refusal.ledger, nullptr};
}

std::string Shortage::text() const {
  std::string what = std::string("no memory for ") + doing;
  if (micro_batch > 0) what += " with a micro-batch of " + std::to_string(micro_batch);
  try {
    // An exception_ptr shows its exception in no other way.
    if (cause) std::rethrow_exception(cause);
  } catch (const Error& problem) {
    what += " (" + std::string(problem.what()) + ")";
  } catch (const c10::Error& problem) {
    const std::string all = problem.what_without_backtrace();
    what += " (" + all.substr(0, all.find('\n')) + ")";
  }
  return what;
}

bool Shortage::is_taken_by_others() const {
  // The bound is below the limit only while others take what the run counted on.
  if (requested_bytes == 0 || limit_bytes == 0 || memory_bound() >= limit_bytes) return false;
  return ledger.held_bytes + promised_bytes + requested_bytes <= limit_bytes - cushion_bytes(limit_bytes);
}

TakenByOthers::TakenByOthers(const Shortage& shortage)
    : Error(Exit::resumable, "memory",
            shortage.text() + ": others hold " + size_text(memory_limit() - memory_bound()) + " of the " +
                size_text(memory_limit()) + " that were free when the run began") {}

std::string Shortage::figures() const {
  std::string text =
      requested_bytes > 0 ? size_text(requested_bytes) + " more were asked for" : "the system gave no more";
  text += " beside " + size_text(ledger.held_bytes) + " that were held";
  if (promised_bytes > 0) text += " and " + size_text(promised_bytes) + " that were about to be";
  if (limit_bytes > 0) text += ", under the limit of " + size_text(limit_bytes);
  return text + ". Held: " + ledger_line(ledger) + ". ";
}

std::string Advice::knobs(const Shortage& shortage) const {
  const Experiment& e = experiment_;
  const LedgerReading& ledger = shortage.ledger;
  std::vector<std::string> same, other;  // what leaves the mathematics alone, cheapest first, and what does not
  if (shortage.limit_bytes > 0) {
    same.push_back("raise memory.limit (now " + size_text(shortage.limit_bytes) +
                   "; `headroom limits` shows what there is)");
  }
  if (e.metrics.mode == "full")
    same.push_back("metrics.mode = \"online\" (metrics hold " + size_text(ledger.live(Owner::metrics)) + ")");
  if (e.data.cache_size_bytes > 0) {
    same.push_back("data.cache_size = 0 (the cache holds " + size_text(ledger.live(Owner::cache)) + ")");
  }
  if (e.data.num_workers > 0) {
    const int64_t workers = ledger.live(Owner::workers);
    same.push_back("data.num_workers = 0 (batches hold " + size_text(ledger.live(Owner::batches)) +
                   (workers > 0 ? ", worker processes " + size_text(workers) : "") + ")");
  }
  // A fixed micro-batch may be too large; "auto" goes down to 1.
  if (e.train.micro_batch > 1 && whole_.empty())
    same.push_back("train.micro_batch = \"auto\" (now " + std::to_string(e.train.micro_batch) + ")");
  if (recomputes_ && e.memory.recompute.empty()) same.push_back("memory.recompute = \"auto\"");
  if (e.train.batch_size > 1) {
    const std::string text = "a smaller train.batch_size with more train.gradient_accumulation_steps (now " +
                             std::to_string(e.train.batch_size) + " x " +
                             std::to_string(e.train.gradient_accumulation_steps) + ")";
    // Where samples are coupled or drawn for in order, another batch is another mathematics.
    (whole_.empty() ? same : other).push_back(text);
  }
  if (e.train.precision == "fp64") other.push_back("train.precision = \"fp32\"");
  if (e.train.ema_decay > 0) other.push_back("no train.ema");
  // Below a tenth of all that is held it would help little.
  if (e.train.optimizer.name != "sgd" && ledger.live(Owner::optimizer) > ledger.held_bytes / 10) {
    other.push_back("train.optimizer.name = \"sgd\" (the optimizer holds " + size_text(ledger.live(Owner::optimizer)) +
                    ")");
  }
  other.push_back("a smaller model or shorter samples (model.options, data.options)");
  std::string text = "To make it fit";
  if (!same.empty()) text += ", with the same mathematics, cheapest first: " + listed(same);
  return text + (same.empty() ? ", changing the mathematics: " : ". Changing the mathematics: ") + listed(other);
}

std::string Advice::warning(const LedgerReading& ledger) const {
  size_t largest = 0;
  for (size_t i = 1; i < owner_count; ++i) {
    if (ledger.live_bytes[i] > ledger.live_bytes[largest]) largest = i;
  }
  const auto owner = static_cast<Owner>(largest);
  // Of activations, and of what has no knob of its own.
  const char* knob = "train.micro_batch";
  if (owner == Owner::reads || owner == Owner::workers) knob = "data.num_workers";
  if (owner == Owner::batches) knob = "data.num_workers and data.prefetch_factor";
  if (owner == Owner::cache) knob = "data.cache_size";
  if (owner == Owner::metrics) knob = "metrics.mode";
  if (owner == Owner::parameters || owner == Owner::gradients || owner == Owner::optimizer) knob = "model.options";
  return "memory is above 90 %: the largest part of this run is " + std::string(owner_name(owner)) + ", " +
         size_text(ledger.live_bytes[largest]) + "; to make it smaller, change " + knob;
}

std::function<void()> within_memory(std::function<void()> action) {
  return [action = std::move(action)] {
    try {
      return action();
    } catch (const c10::OutOfMemoryError&) {
    } catch (const std::bad_alloc&) {
    }
    const Shortage shortage = Shortage::now("setting up", 0);
    throw Error(Exit::does_not_fit, "memory",
                shortage.text() + ": " + shortage.figures() + "`headroom limits` shows what there is");
  };
}

void Advice::give_up(const Shortage& shortage) const {
  if (shortage.is_taken_by_others()) throw TakenByOthers(shortage);
  const std::string why = whole_.empty() ? "" : " (" + whole_ + ")";
  throw Error(Exit::does_not_fit, "memory", shortage.text() + why + ": " + shortage.figures() + knobs(shortage));
}

}  // namespace headroom
