"""Mistakes in a model: edits of NAME.cpp as `headroom new model` makes it, NAME being wrist."""
from mistake import CHECK, MENDED, NOBODY, RUN, TOLD, Mistake

MEMBERS = "  double dropout_;\n"
BUILT = "    head_ = register_module(\"head\", torch::nn::Linear(hidden, outputs));\n"
HIDDEN = "    hidden_ = register_module(\"hidden\", torch::nn::Linear(inputs, hidden));\n"
BEGINS = "    const at::Tensor x = batch.at(\"x\").flatten(1), y = batch.at(\"y\").flatten(1);\n"
DROPS = "dropout(call, \"hidden\"_site, torch::relu(hidden_->forward(x)), dropout_)"
PREDICTS = "    const at::Tensor prediction = head_->forward(hidden);\n"
SQUARED = "(prediction - y).square().sum();\n"
WEIGHT = "static_cast<double>(y.numel());\n"
RETURNS = "    return {squared, weight, {prediction, y}, {{squared, weight}}};\n"
INPUT_X = "{.name = \"x\", .shape = {any_size}}"
PLUGIN = "HEADROOM_PLUGIN(.id = \"wrist\","


def before(place, code):
    return (place, code + place)


def after(place, code):
    return (place, place + code)


def member(code):
    return after(MEMBERS, f"  {code}\n")


UNREGISTERED = "is no parameter of the model"

MISTAKES = [
    Mistake("the loss averaged, not summed", [(SQUARED, "(prediction - y).square().mean();\n")], CHECK,
            check="whole or in pieces, the gradient is the same: [wrist] gradients differ"),
    Mistake("a loss that was detached", [(SQUARED, "(prediction.detach() - y).square().sum();\n")], CHECK,
            check="without a graph", run=(3, "without a graph")),
    Mistake("NoGradGuard around the step", [before(BEGINS, "    const torch::NoGradGuard no_grad;\n")], CHECK,
            check="without a graph", run=(3, "without a graph")),
    Mistake("autograd left switched off", [before(BEGINS, "    at::GradMode::set_enabled(false);\n")], CHECK,
            check="leaves autograd switched off", run=(3, "leaves autograd switched off")),
    Mistake("a weight below 0", [(WEIGHT, "-static_cast<double>(y.numel());\n")], CHECK, check="weight",
            run=(3, "weight")),
    Mistake("a weight of 0", [(WEIGHT, "0.0 * static_cast<double>(y.numel());\n")], CHECK, check="the weight 0",
            run=(4, "")),
    Mistake("eval() in a step, not taken back",
            [member("torch::nn::Dropout torch_dropout_{nullptr};"), after(BUILT, "    register_module(\"torch_dropout\", torch_dropout_ = torch::nn::Dropout(0.1));\n"),
             before(BEGINS, "    eval();\n")], CHECK, check="train()", run=(3, "train()")),
    Mistake("eval() in an evaluation, not taken back",
            [before(BEGINS, "    if (!call.training()) eval();\n    if (is_training() != call.training()) throw std::logic_error(\"mode\");\n")],
            MENDED),
    Mistake("tied weights, registered twice", [after(BUILT, "    register_module(\"head_again\", head_);\n")], MENDED),
    Mistake("a parameter replaced after construction",
            [member("bool replaced_ = false;"),
             before(BEGINS, "    if (!replaced_) head_->weight = torch::zeros_like(head_->weight).requires_grad_();\n    replaced_ = true;\n")],
            CHECK, check=UNREGISTERED, run=(3, UNREGISTERED)),
    Mistake("a lazy module, made in the first step",
            [member("torch::nn::Linear lazy_{nullptr};"),
             (PREDICTS, "    if (!lazy_) lazy_ = register_module(\"lazy\", torch::nn::Linear(hidden.size(1), hidden.size(1)));\n"
                        "    const at::Tensor prediction = head_->forward(lazy_->forward(hidden));\n")],
            CHECK, check=UNREGISTERED, run=(3, UNREGISTERED)),
    Mistake("a submodule that is not registered", [(HIDDEN, "    hidden_ = torch::nn::Linear(inputs, hidden);\n")], CHECK,
            check=UNREGISTERED, run=(3, UNREGISTERED)),
    Mistake("a parameter that is never used",
            [after(BUILT, "    register_parameter(\"spare\", torch::ones({3}));\n")], TOLD, check="does not depend on spare"),
    Mistake("backward() in the step", [before(RETURNS, "    squared.backward({}, /*retain_graph=*/true);\n")], CHECK,
            check="leave out backward()", run=(3, "leave out backward()")),
    Mistake("weights changed in the step",
            [before(BEGINS, "    if (call.training()) {\n      const torch::NoGradGuard no_grad;\n      head_->weight.mul_(0.999);\n    }\n")],
            CHECK, check="the same step twice gives the same"),
    Mistake("exit(0) in a step", [before(BEGINS, "    if (call.training()) std::exit(0);\n")], CHECK, check="exit()", run=(3, "exit()")),
    Mistake("a matrix product of shapes that do not suit", [(PREDICTS, "    const at::Tensor prediction = head_->forward(x);\n")],
            CHECK, check="mat1 and mat2 shapes cannot be multiplied", run=(3, "mat1 and mat2 shapes cannot be multiplied")),
    Mistake("LibTorch's dropout, with the capabilities of keyed draws",
            [(DROPS, "torch::dropout(torch::relu(hidden_->forward(x)), dropout_, call.training())")], CHECK,
            check="draws from LibTorch's generator"),
    Mistake("a generator of its own, not keyed",
            [("#include \"headroom/model.hpp\"\n", "#include <random>\n\n#include \"headroom/model.hpp\"\n"),
             member("std::mt19937 random_{1};"),
             (SQUARED, "(prediction - y).square().sum() * (1.0 + 1e-3 * static_cast<double>(random_() % 100));\n")], CHECK,
            check="the same step twice gives the same"),
    Mistake("first weights from the clock",
            [("#include \"headroom/model.hpp\"\n", "#include <chrono>\n\n#include \"headroom/model.hpp\"\n"),
             before(HIDDEN, "    torch::manual_seed(std::chrono::steady_clock::now().time_since_epoch().count());\n")], CHECK,
            check="one seed gives the same first weights"),
    Mistake("state that an evaluation changes",
            [member("at::Tensor seen_;"), after(BUILT, "    seen_ = register_buffer(\"seen\", torch::zeros({1}));\n"),
             before(BEGINS, "    seen_ += 1;\n")], CHECK, check="evaluation changes a buffer"),
    Mistake("batch norm, undeclared",
            [member("torch::nn::BatchNorm1d norm_{nullptr};"),
             after(BUILT, "    norm_ = register_module(\"norm\", torch::nn::BatchNorm1d(hidden));\n"),
             (PREDICTS, "    const at::Tensor prediction = head_->forward(norm_->forward(hidden));\n")], CHECK,
            check="HR_COUPLES_SAMPLES"),
    Mistake("the target standardised by its batch", [(SQUARED, "(prediction - (y - y.mean()) / (y.std() + 1e-3)).square().sum();\n")],
            CHECK, check="HR_COUPLES_SAMPLES"),
    Mistake("a leak of 4 MiB a step, in tensors",
            [member("std::vector<at::Tensor> kept_;"), before(BEGINS, "    kept_.push_back(torch::zeros({1 << 20}));\n")], CHECK,
            check="bytes more", run=(0, "leak: "), settings=["train.epochs=4"]),
    Mistake("a leak of 4 MiB a step, beside tensors",
            [member("std::vector<std::vector<float>> kept_;"), before(BEGINS, "    kept_.emplace_back(1 << 20, 1.0f);\n")], CHECK,
            check="bytes more", run=(0, "leak: "), settings=["train.epochs=4"]),
    Mistake("an input written in place", [before(BEGINS, "    batch.at(\"x\").mul_(2.0);\n")], CHECK, check="read-only",
            run=(3, "read-only")),
    Mistake("a metric that is a mean of the batch", [(RETURNS, "    return {squared, weight, {prediction, y}, {{squared / weight, 1.0}}};\n")],
            CHECK, check="'rmse' of the samples together"),
    Mistake("an output that has no rows", [(RETURNS, "    return {squared, weight, {prediction.mean(0), y}, {{squared, weight}}};\n")],
            CHECK, check="prediction", run=(3, "prediction")),
    Mistake("outputs() misspelt", [("std::vector<Output> outputs() const", "std::vector<Output> output() const")], CHECK,
            check="returned 2 outputs", run=(3, "returned 2 outputs")),
    Mistake("a loss that is not a number", [(SQUARED, "(prediction - y).log().sum();\n")], CHECK, check="which is not a number to train by",
            run=(7, "loss")),
    Mistake("a graphics processor that is not there", [before(BEGINS, "    const at::Tensor one = torch::ones({1}, torch::kCUDA);\n")],
            CHECK, check="CUDA", run=(3, "CUDA")),
    Mistake("the CPU hard-coded", [(SQUARED, "(prediction.cpu() - y.cpu()).square().sum();\n")], NOBODY,
            why="where all is on the CPU this is right; on a GPU it is slow"),
    Mistake("the target scaled by numbers of other data", [(SQUARED, "(prediction - (y - 1.5) / 4.0).square().sum();\n")], NOBODY,
            why="as good a loss as another"),
    Mistake("the target among the inputs of the network", [(PREDICTS, "    const at::Tensor prediction = head_->forward(hidden) + 0.5 * y;\n")],
            NOBODY, why="a loss may look at the target; a model with headroom.predict/1 is tried without it"),
    Mistake("TORCH_LIBRARY in a plugin",
            [before(PLUGIN, "TORCH_LIBRARY(wrist, library) { library.def(\"twice\", [](at::Tensor x) { return x + x; }); }\n")], CHECK,
            check="TORCH_LIBRARY"),
    Mistake("TORCH_LIBRARY of a name that is taken", [before(PLUGIN, "TORCH_LIBRARY(aten, library) { (void)library; }\n")], CHECK,
            check="TORCH_LIBRARY", run=(3, "TORCH_LIBRARY")),
    Mistake("HEADROOM_PLUGIN forgotten",
            [(PLUGIN, "[[maybe_unused]] constexpr headroom::sdk::Plugin forgotten{.id = \"wrist\","),
             ("model<WristModel>()});", "model<WristModel>()}};")], CHECK, check="does not export headroom_plugin", run=(3, "headroom_plugin")),
    Mistake("another dtype in inputs() than the step takes", [(INPUT_X, "{.name = \"x\", .dtype = i64, .shape = {any_size}}")], CHECK,
            check="dtype", alone=True),
    Mistake("another name in inputs() than the step takes", [(INPUT_X, "{.name = \"input\", .shape = {any_size}}")], TOLD,
            check="not stepped", alone=True),
]
