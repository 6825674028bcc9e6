#include "lstm_rollout.hpp"

#include <ATen/Parallel.h>
#include <algorithm>

#include "headroom/sdk/autocast.hpp"
#include "lstm_kernel.hpp"
#include "step_weight.hpp"

namespace headroom {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t cells_at_once = 4096;  // a thread is not worth waking for less

template <class T>
void run_cells_in_parallel(const CellForward<T>& all) {
  const int64_t hidden = all.hidden, grain = std::max<int64_t>(1, cells_at_once / hidden);
  at::parallel_for(0, all.rows, grain, [&](int64_t begin, int64_t end) {
    const int64_t at = begin * hidden;
    run_cells(
        CellForward<T>{end - begin, hidden, all.gates + 4 * at, all.cell_before + at, all.cell + at, all.output + at});
  });
}
template <class T>
void run_cells_in_parallel(const CellBackward<T>& all) {
  const int64_t hidden = all.hidden, grain = std::max<int64_t>(1, cells_at_once / hidden);
  at::parallel_for(0, all.rows, grain, [&](int64_t begin, int64_t end) {
    const int64_t at = begin * hidden;
    run_cells(CellBackward<T>{end - begin, hidden, all.gates + 4 * at, all.cell_before + at, all.cell + at,
                              all.to_output + at, all.to_cell + at});
  });
}

void forward_cells(const at::Tensor& gates, const at::Tensor& before, const at::Tensor& cell,
                   const at::Tensor& output) {
  AT_DISPATCH_FLOATING_TYPES(gates.scalar_type(), "forward_cells", [&] {
    run_cells_in_parallel(CellForward<scalar_t>{gates.size(0), cell.size(1), gates.mutable_data_ptr<scalar_t>(),
                                                before.const_data_ptr<scalar_t>(), cell.mutable_data_ptr<scalar_t>(),
                                                output.mutable_data_ptr<scalar_t>()});
  });
}
void backward_cells(const at::Tensor& gates, const at::Tensor& before, const at::Tensor& cell,
                    const at::Tensor& to_output, const at::Tensor& to_cell) {
  AT_DISPATCH_FLOATING_TYPES(gates.scalar_type(), "backward_cells", [&] {
    run_cells_in_parallel(CellBackward<scalar_t>{
        gates.size(0), cell.size(1), gates.mutable_data_ptr<scalar_t>(), before.const_data_ptr<scalar_t>(),
        cell.const_data_ptr<scalar_t>(), to_output.const_data_ptr<scalar_t>(), to_cell.mutable_data_ptr<scalar_t>()});
  });
}

at::Tensor rows(const at::Tensor& x) { return x.view({-1, x.size(-1)}); }

// A layer's values over time. Where nothing is kept for backward there is room for one step, used again and again.
struct Layer {
  at::Tensor gates;   // [kept, batch, 4 * hidden], out of the gates
  at::Tensor cell;    // [kept + 1, batch, hidden]; the first is zero
  at::Tensor output;  // [kept + 1, batch, hidden]; the first is zero
};

struct Shape {
  int64_t steps, batch, features, joints, hidden, outputs, layers;
};

Shape shape_of(const at::Tensor& features, const at::Tensor& initial, const at::Tensor& hidden_weight,
               const at::Tensor& out_weight, size_t layers) {
  return {features.size(0),
          features.size(1),
          features.size(2),
          initial.size(1),
          hidden_weight.size(1),
          out_weight.size(0),
          static_cast<int64_t>(layers)};
}

std::vector<Layer> make_layers(const Shape& shape, int64_t kept, const at::TensorOptions& like) {
  std::vector<Layer> layers;
  for (int64_t l = 0; l < shape.layers; ++l) {
    Layer& layer = layers.emplace_back(Layer{at::empty({kept, shape.batch, 4 * shape.hidden}, like),
                                             at::empty({kept + 1, shape.batch, shape.hidden}, like),
                                             at::empty({kept + 1, shape.batch, shape.hidden}, like)});
    layer.cell[0].zero_();
    layer.output[0].zero_();
  }
  return layers;
}

// The inputs in the order of the function's arguments.
enum Input : size_t { kFeatures, kInitial, kOutWeight, kOutBias, kFirstLayer };

struct LstmRollout : torch::autograd::Function<LstmRollout> {
  static at::Tensor forward(AutogradContext* context, at::TensorList inputs, const StateRule& rule, double output_scale,
                            bool keeps) {
    const at::Tensor &features = inputs[kFeatures], &initial = inputs[kInitial];
    const at::TensorList weights = inputs.slice(kFirstLayer);
    const Shape shape = shape_of(features, initial, weights[1], inputs[kOutWeight], weights.size() / 4);
    const std::vector<Layer> layers = make_layers(shape, keeps ? shape.steps : 1, features.options());
    const at::Tensor states = at::empty({shape.steps + 1, shape.batch, shape.joints}, features.options());
    states[0].copy_(initial);

    const auto by_step = [&](const at::Tensor& weight) { return StepWeight(weight.t(), shape.batch); };
    const at::Tensor of_input = weights[0].t();
    const at::Tensor of_features = of_input.narrow(0, 0, shape.features);
    const StepWeight of_state(of_input.narrow(0, shape.features, shape.joints), shape.batch);
    const StepWeight of_output = by_step(inputs[kOutWeight]);
    std::vector<at::Tensor> bias;
    std::vector<StepWeight> of_below, of_hidden;  // of_below[0] is the layer above the first
    for (int64_t l = 0; l < shape.layers; ++l) {
      bias.push_back(weights[4 * l + 2] + weights[4 * l + 3]);
      of_hidden.push_back(by_step(weights[4 * l + 1]));
      if (l > 0) of_below.push_back(by_step(weights[4 * l]));
    }
    if (keeps) {
      at::Tensor all = rows(layers[0].gates);
      at::addmm_out(all, bias[0], rows(features), of_features);
    }
    for (int64_t step = 0; step < shape.steps; ++step) {
      const int64_t now = keeps ? step : 0, after = keeps ? step + 1 : 0;
      for (int64_t l = 0; l < shape.layers; ++l) {
        const Layer& layer = layers[static_cast<size_t>(l)];
        at::Tensor gates = layer.gates[now];
        if (l > 0) {
          gates.copy_(bias[l].expand_as(gates));
          of_below[l - 1].add_product(gates, layers[l - 1].output[after]);
        } else {
          if (!keeps) at::addmm_out(gates, bias[0], features[step], of_features);
          of_state.add_product(gates, states[step]);
        }
        of_hidden[l].add_product(gates, layer.output[now]);
        forward_cells(gates, layer.cell[now], layer.cell[after], layer.output[after]);
      }
      const at::Tensor shown = at::leaky_relu(layers.back().output[after], leaky_slope);
      at::Tensor output = inputs[kOutBias].repeat({shape.batch, 1});
      of_output.add_product(output, shown);
      output.mul_(output_scale);
      states[step + 1].copy_(rule.next(states[step], output, step));
    }
    if (keeps) save(context, inputs, rule, output_scale, layers, states);
    return states.narrow(0, 1, shape.steps).clone();
  }

  static variable_list backward(AutogradContext* context, variable_list gradients);

 private:
  static void save(AutogradContext* context, at::TensorList inputs, const StateRule& rule, double output_scale,
                   const std::vector<Layer>& layers, const at::Tensor& states) {
    variable_list saved = inputs.vec();
    saved.push_back(states);
    for (const Layer& layer : layers) saved.insert(saved.end(), {layer.gates, layer.cell, layer.output});
    context->save_for_backward(saved);
    context->saved_data["inputs"] = static_cast<int64_t>(inputs.size());
    context->saved_data["output_scale"] = output_scale;
    context->saved_data["rule"] =
        std::vector<int64_t>{rule.joints, rule.position_steps, rule.two_halves ? 1 : 0, rule.adds_always ? 1 : 0};
  }
};

// What one roll-out's backward works on.
struct Backward {
  StateRule rule;
  double output_scale;
  variable_list inputs;
  at::Tensor states;
  std::vector<Layer> layers;
  Shape shape;

  explicit Backward(AutogradContext& context) {
    const std::vector<int64_t> kept = context.saved_data["rule"].toIntVector();
    rule = {kept[0], kept[1], kept[2] != 0, kept[3] != 0};
    output_scale = context.saved_data["output_scale"].toDouble();
    variable_list saved = context.get_saved_variables();
    const auto count = static_cast<size_t>(context.saved_data["inputs"].toInt());
    inputs.assign(saved.begin(), saved.begin() + static_cast<ptrdiff_t>(count));
    states = saved[count];
    for (size_t i = count + 1; i < saved.size(); i += 3) layers.push_back({saved[i], saved[i + 1], saved[i + 2]});
    shape = shape_of(inputs[kFeatures], inputs[kInitial], weight(0, 1), inputs[kOutWeight], layers.size());
  }

  const at::Tensor& weight(int64_t layer, int64_t which) const {
    return inputs[kFirstLayer + static_cast<size_t>(4 * layer + which)];
  }

  // From the last step to the first. Leaves in `gates` of every layer the gradient of what went into them; returns the
  // decoder's outputs' [steps, batch, outputs], and the initial state's.
  std::pair<at::Tensor, at::Tensor> through_time(const at::Tensor& to_states) {
    const at::TensorOptions like = states.options();
    at::Tensor to_outputs = at::zeros({shape.steps, shape.batch, shape.outputs}, like);
    at::Tensor to_state = at::zeros({shape.batch, shape.joints}, like);
    std::vector<at::Tensor> to_hidden, to_cell;
    for (size_t l = 0; l < layers.size(); ++l) {
      to_hidden.push_back(at::zeros({shape.batch, shape.hidden}, like));
      to_cell.push_back(at::zeros({shape.batch, shape.hidden}, like));
    }
    const StepWeight of_state(weight(0, 0).narrow(1, shape.features, shape.joints), shape.batch),
        of_output(inputs[kOutWeight], shape.batch);
    std::vector<StepWeight> of_below, of_hidden;
    for (int64_t l = 0; l < shape.layers; ++l) {
      of_hidden.emplace_back(weight(l, 1), shape.batch);
      if (l > 0) of_below.emplace_back(weight(l, 0), shape.batch);
    }
    for (int64_t step = shape.steps - 1; step >= 0; --step) {
      to_state.add_(to_states[step]);
      at::Tensor to_output = to_outputs[step];
      to_output.narrow(1, rule.offset(step), shape.joints).copy_(to_state).mul_(output_scale);
      if (!rule.adds(step)) to_state.zero_();
      const at::Tensor top = layers.back().output[step + 1];
      at::Tensor to_below = at::zeros({shape.batch, shape.hidden}, like);
      of_output.add_product(to_below, to_output);
      to_below = at::leaky_relu_backward(to_below, top, leaky_slope, /*self_is_result=*/false);
      for (int64_t l = shape.layers - 1; l >= 0; --l) {
        const auto at_layer = static_cast<size_t>(l);
        const Layer& layer = layers[at_layer];
        const at::Tensor gates = layer.gates[step];
        to_hidden[at_layer].add_(to_below);
        backward_cells(gates, layer.cell[step], layer.cell[step + 1], to_hidden[at_layer], to_cell[at_layer]);
        of_hidden[at_layer].add_product(to_hidden[at_layer].zero_(), gates);
        if (l > 0) of_below[at_layer - 1].add_product(to_below.zero_(), gates);
        if (l == 0) of_state.add_product(to_state, gates);
      }
    }
    return {to_outputs, to_state};
  }

  variable_list run(const at::Tensor& to_states) {
    const auto [to_outputs, to_initial] = through_time(to_states);
    variable_list result(inputs.size() + 3);  // none for rule, scale and whether to keep
    const at::Tensor into = rows(layers[0].gates);
    if (inputs[kFeatures].requires_grad())
      result[kFeatures] = at::mm(into, weight(0, 0).narrow(1, 0, shape.features)).view_as(inputs[kFeatures]);
    if (inputs[kInitial].requires_grad()) result[kInitial] = to_initial;
    const at::Tensor shown = at::leaky_relu(layers.back().output.narrow(0, 1, shape.steps), leaky_slope);
    const at::Tensor to_out = rows(to_outputs);
    result[kOutWeight] = at::mm(to_out.t(), rows(shown));
    result[kOutBias] = to_out.sum(0);
    for (int64_t l = 0; l < shape.layers; ++l) weights_of(l, result);
    return result;
  }

  void weights_of(int64_t l, variable_list& result) const {
    const auto at_layer = static_cast<size_t>(l);
    const at::Tensor into = rows(layers[at_layer].gates).t();
    const auto before = [this](const at::Tensor& all) { return rows(all.narrow(0, 0, shape.steps)); };
    const size_t first = kFirstLayer + 4 * at_layer;
    if (l == 0) {
      at::Tensor to_input = at::empty_like(weight(0, 0));
      to_input.narrow(1, 0, shape.features).copy_(at::mm(into, rows(inputs[kFeatures])));
      to_input.narrow(1, shape.features, shape.joints).copy_(at::mm(into, before(states)));
      result[first] = to_input;
    } else {
      result[first] = at::mm(into, rows(layers[at_layer - 1].output.narrow(0, 1, shape.steps)));
    }
    result[first + 1] = at::mm(into, before(layers[at_layer].output));
    result[first + 2] = into.sum(1);
    result[first + 3] = result[first + 2].clone();
  }
};

variable_list LstmRollout::backward(AutogradContext* context, variable_list gradients) {
  return Backward(*context).run(gradients.front().contiguous());
}

}  // namespace

bool rolls_out_lstm(const at::Tensor& features) {
  const at::ScalarType type = features.scalar_type();
  return features.is_cpu() && (type == at::kFloat || type == at::kDouble) &&
         !sdk::Autocast::now(features.device()).enabled;
}

at::Tensor roll_out_lstm(const at::Tensor& features, const at::Tensor& initial, const LstmWeights& weights,
                         const StateRule& rule) {
  // Contiguous before the function: a copy made inside of it would take no gradient.
  variable_list inputs = {features.contiguous(), initial, weights.out_weight, weights.out_bias};
  inputs.insert(inputs.end(), weights.layers.begin(), weights.layers.end());
  const bool keeps = at::GradMode::is_enabled() &&
                     std::ranges::any_of(inputs, [](const at::Tensor& input) { return input.requires_grad(); });
  return LstmRollout::apply(at::TensorList(inputs), rule, weights.output_scale, keeps);
}

}  // namespace headroom
