// A small network that tells classes apart: the fields `x` of n numbers and `label`, an integer from 0; cross-entropy
// with smoothed labels and weighted classes. The host measures accuracy, F1 and the confusion matrix of its scores.
#include "headroom/model.hpp"

namespace {

using namespace headroom::sdk;

class Classifier : public torch::nn::Module {
 public:
  static constexpr uint32_t capabilities = HR_MODEL_FP64 | HR_MODEL_BF16 | HR_MODEL_FP16 | HR_RNG_KEYED;

  static OptionList options() {
    return {opt_i64("classes").def(3).min(2).max(HR_MOST_CLASSES).help("classes to tell apart"),
            opt_i64("hidden").def(32).min(1).max(65536).help("width of the two hidden layers"),
            opt_f64("dropout").def(0.0).min(0).max(1).help("share of the hidden values hidden in training"),
            opt_f64("label_smoothing").def(0.0).min(0).max(1).help("share of a label that goes to all classes alike"),
            opt_string("class_weights")
                .def("none")
                .choices({"none", "balanced"})
                .help("balanced: the rarer its class in the training split, the more a sample weighs"),
            opt_f64s("class_weight_list").min(0).help("a weight a class, in place of class_weights")};
  }

  // So that it can be tried without data.
  static std::vector<Input> inputs(const Options& options) {
    return {{.name = "x", .shape = {any_size}},
            {.name = "label", .dtype = i64, .max = static_cast<double>(options.i64("classes") - 1)}};
  }

  Classifier(const Options& options, const Fields& fields)
      : classes_(options.i64("classes")),
        dropout_(options.f64("dropout")),
        label_smoothing_(options.f64("label_smoothing")),
        balanced_(options.string("class_weights") == "balanced") {
    const DLDataType label = fields.at("label").dtype;
    if (label.code == kDLFloat || fields.at("label").elements() != 1)
      throw Error(HR_INVALID_ARGUMENT, "the model needs a field 'label' of one integer");
    const int64_t inputs = fields.at("x").elements(), hidden = options.i64("hidden");
    first_ = register_module("first", torch::nn::Linear(inputs, hidden));
    second_ = register_module("second", torch::nn::Linear(hidden, hidden));
    scores_ = register_module("scores", torch::nn::Linear(hidden, classes_));
    // A buffer: a run that goes on finds in its checkpoint what balance() made.
    class_weights_ = register_buffer("class_weights", first_weights(options));
  }

  std::vector<Output> outputs() const {
    return {{.name = "scores", .role = HR_PREDICTION}, {.name = "label", .role = HR_TARGET}};
  }
  std::vector<ClassScores> classes() const {
    return {{.output = "scores", .count = classes_, .field = "label", .counted = balanced_}};
  }

  // All / (classes x those of the class): together the samples keep their weight. A class that does not occur has 1.
  void balance(const std::string&, std::span<const uint64_t> counts) {
    double all = 0.0;
    for (const uint64_t count : counts) all += static_cast<double>(count);
    const torch::NoGradGuard no_grad;
    for (std::size_t c = 0; c < counts.size(); ++c) {
      const double weight =
          counts[c] > 0 ? all / (static_cast<double>(counts.size()) * static_cast<double>(counts[c])) : 1.0;
      class_weights_[static_cast<int64_t>(c)].fill_(weight);
    }
  }

  StepOutput step(const Call& call, const Batch& batch) {
    at::Tensor hidden = torch::relu(first_->forward(batch.at("x").flatten(1)));
    hidden = torch::relu(second_->forward(dropout(call, "hidden"_site, hidden, dropout_)));
    at::Tensor scores = scores_->forward(hidden);
    // A sum of what is narrower would round.
    if (at::isReducedFloatingType(scores.scalar_type())) scores = scores.to(at::kFloat);
    const at::Tensor label = batch.at("label").reshape({-1}).to(at::kLong);
    const at::Tensor loss_sum =
        at::cross_entropy_loss(scores, label, class_weights_.to(scores.scalar_type()), at::Reduction::Sum,
                               /*ignore_index=*/-100, label_smoothing_);
    // What the mean is divided by: labels of -100 count for nothing.
    const at::Tensor counts = label.ne(-100).to(at::kDouble);
    const at::Tensor weight = (class_weights_.to(at::kDouble).index_select(0, label.clamp_min(0)) * counts).sum();
    return {loss_sum, weight, {scores, label}};
  }

 private:
  at::Tensor first_weights(const Options& options) const {
    at::Tensor weights = torch::ones({classes_});
    if (!options.has("class_weight_list")) return weights;
    if (balanced_) {
      throw Error(HR_INVALID_ARGUMENT,
                  "class_weights = \"balanced\" and class_weight_list exclude each other: set one of them");
    }
    const std::vector<double> list = options.list_f64("class_weight_list");
    if (static_cast<int64_t>(list.size()) != classes_) {
      throw Error(HR_INVALID_ARGUMENT, "class_weight_list has " + std::to_string(list.size()) +
                                           " weights; classes = " + std::to_string(classes_) + " needs as many");
    }
    for (std::size_t c = 0; c < list.size(); ++c) weights[static_cast<int64_t>(c)].fill_(list[c]);
    return weights;
  }

  int64_t classes_;
  double dropout_, label_smoothing_;
  bool balanced_;
  torch::nn::Linear first_{nullptr}, second_{nullptr}, scores_{nullptr};
  at::Tensor class_weights_;
};

}  // namespace

HEADROOM_PLUGIN(.id = "classifier", .version = "1.0", .summary = "A small network that tells classes apart",
                .interfaces = {headroom::sdk::model<Classifier>()});
