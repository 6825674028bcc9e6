#include "infer/torchscript.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <sstream>
#include <torch/csrc/jit/frontend/error_report.h>
#include <torch/csrc/jit/frontend/tracer.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/script.h>

#include "plugins/field_json.hpp"
#include "record/run_folder.hpp"

namespace headroom {

namespace {

namespace jit = torch::jit;

constexpr double tolerance = 1e-5;  // of an output's largest value
constexpr const char* facts_file = "headroom.json";

Error cannot_trace(const Inference& inference, const std::string& why) {
  return Error(Exit::bad_input, "export",
               "model '" + inference.id() + "' cannot be written as TorchScript: " + why +
                   "; export --format safetensors, and ask the model through libheadroom_infer (docs/export.md)");
}

// Of what LibTorch says.
std::string first_line(const std::string& text) { return "LibTorch says: " + text.substr(0, text.find('\n')); }

// As names of Python's, all different.
std::vector<std::string> argument_names(const std::vector<std::string>& names) {
  std::vector<std::string> arguments;
  for (std::string name : names) {
    for (char& c : name)
      if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
    if (name.empty() || std::isdigit(static_cast<unsigned char>(name.front())) != 0) name.insert(0, "input_");
    while (name == "self" || std::ranges::count(arguments, name) > 0) name += '_';
    arguments.push_back(std::move(name));
  }
  return arguments;
}

// Which inputs the program takes, and which outputs it gives.
struct Signature {
  explicit Signature(const Inference& inference) {
    for (size_t i = 0; i < inference.inputs().size(); ++i)
      if (inference.target() != i) inputs.push_back(i);
    for (size_t i = 0; i < inference.outputs().size(); ++i)
      if (inference.outputs()[i].given) outputs.push_back(i);
  }
  std::vector<size_t> inputs, outputs;
};

jit::Stack arguments_of(const Signature& signature, const std::vector<at::Tensor>& inputs) {
  jit::Stack stack;
  for (const size_t i : signature.inputs) stack.emplace_back(inputs[i]);
  return stack;
}

std::vector<at::Tensor> results_of(const jit::IValue& value) {
  if (value.isTensor()) return {value.toTensor()};
  std::vector<at::Tensor> results;
  for (const jit::IValue& element : value.toTupleRef().elements()) results.push_back(element.toTensor());
  return results;
}

std::vector<at::Tensor> asked(Inference& inference, const Signature& signature, const jit::Stack& arguments) {
  std::vector<at::Tensor> inputs(inference.inputs().size());
  for (size_t k = 0; k < signature.inputs.size(); ++k) inputs[signature.inputs[k]] = arguments[k].toTensor();
  const std::vector<at::Tensor> outputs = inference.run(inputs);
  std::vector<at::Tensor> given;
  for (const size_t i : signature.outputs) given.push_back(outputs[i]);
  return given;
}

// What is traced. `one_sample`: the first operation then refuses any other number, which others may have burnt in.
jit::Stack traced(Inference& inference, const Signature& signature, jit::Stack arguments, bool one_sample) {
  // What is read of values is burnt in: the trials show where that matters.
  const jit::tracer::NoWarn quiet;
  for (jit::IValue& argument : arguments) {
    const at::Tensor tensor = argument.toTensor();
    if (one_sample) argument = tensor.view(tensor.sizes());
  }
  const std::vector<at::Tensor> given = asked(inference, signature, arguments);
  if (given.size() == 1) return {given.front()};
  std::vector<jit::IValue> elements(given.begin(), given.end());
  return {c10::ivalue::Tuple::create(std::move(elements))};
}

// The model's tensors become the program's buffers: what a trace meets of them it takes from there.
void add_tensors(jit::Module& module, Model& model) {
  std::vector<std::string> names;
  for (Parameter& parameter : model.parameters()) {
    std::string name = "weight_" + parameter.name;
    for (char& c : name)
      if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
    while (std::ranges::count(names, name) > 0) name += '_';
    names.push_back(name);
    // A tensor that asks for a gradient cannot stand in a trace.
    parameter.tensor->set_requires_grad(false);
    module.register_buffer(name, *parameter.tensor);
  }
}

jit::Module trace(Inference& inference, const Signature& signature, const std::vector<std::string>& names,
                  const std::vector<at::Tensor>& inputs, bool one_sample) {
  const at::NoGradGuard no_grad;
  jit::Module module("HeadroomModel");
  add_tensors(module, inference.model());
  const auto body = [&](jit::Stack arguments) {
    return traced(inference, signature, std::move(arguments), one_sample);
  };
  const auto no_name = [](const at::Tensor&) { return std::string(); };
  const auto state = jit::tracer::trace(arguments_of(signature, inputs), body, no_name, /*strict=*/true,
                                        /*force_outplace=*/false, &module, names)
                         .first;
  jit::Function* forward = module._ivalue()->compilation_unit()->create_function(
      c10::QualifiedName(*module.type()->name(), "forward"), state->graph);
  module.type()->addMethod(forward);
  return module;
}

double difference(const at::Tensor& given, const at::Tensor& expected) {
  if (!given.defined() || given.sizes() != expected.sizes() || given.scalar_type() != expected.scalar_type())
    return INFINITY;
  if (expected.numel() == 0) return 0.0;
  const at::Tensor wide = expected.to(at::kDouble);
  const double most = (given.to(at::kDouble) - wide).abs().max().item<double>();
  return most == 0.0 ? 0.0 : most / std::max(wide.abs().max().item<double>(), 1e-30);
}

// The largest of all outputs; infinity where the program fails, NaN where either gives no number.
double difference(jit::Module& program, Inference& inference, const Signature& signature, const ScriptTrial& trial) {
  const at::NoGradGuard no_grad;
  const jit::Stack arguments = arguments_of(signature, trial.inputs);
  const std::vector<at::Tensor> expected = asked(inference, signature, arguments);
  double largest = 0.0;
  try {
    // More than once: LibTorch rewrites a program by what its first runs were.
    for (int run = 0; run < 3; ++run) {
      const std::vector<at::Tensor> given = results_of(program.forward(arguments));
      if (given.size() != expected.size()) return INFINITY;
      for (size_t i = 0; i < given.size(); ++i) {
        const double found = difference(given[i], expected[i]);
        if (std::isnan(found)) return found;
        largest = std::max(largest, found);
      }
    }
  } catch (const std::exception&) {  // the burnt-in number of samples, or an operation that cannot be loaded
    return INFINITY;
  }
  return largest;
}

bool has_one_sample(const Signature& signature, const ScriptTrial& trial) {
  return trial.inputs[signature.inputs.front()].size(0) == 1;
}

// Fields as the program takes them, and what it gives.
std::string facts(const Inference& inference, const TrainedModel& trained, const Signature& signature,
                  const WrittenScript& written) {
  nlohmann::json json(trained.metadata());
  json.erase("format");
  json.erase("headroom");
  std::vector<Field> inputs;
  for (const size_t i : signature.inputs) inputs.push_back(inference.inputs()[i]);
  json["inputs"] = fields_to_json(inputs);
  json["arguments"] = written.arguments;
  json["samples"] = written.any_count ? "any" : "1";
  for (const size_t i : signature.outputs) {
    const Inference::Output& output = inference.outputs()[i];
    const std::string of = output.field ? inference.inputs()[*output.field].name : "";
    json["gives"].push_back({{"name", output.name},
                             {"dtype", dtype_name(output.dtype)},
                             {"shape", output.shape},
                             {"unit", output.unit},
                             {"measured_as", of}});
  }
  return json_text(json, 2);
}

// What a file of it would hold.
std::string saved(const jit::Module& module, const std::string& facts_text) {
  std::ostringstream bytes;
  module.save(bytes, {{facts_file, facts_text}});
  return std::move(bytes).str();
}

jit::Module loaded(const std::string& bytes) {
  std::istringstream stream(bytes);
  return jit::load(stream, at::Device(at::kCPU));
}

// A program, or nullopt where it disagrees; `why` then says on what.
std::optional<jit::Module> agreeing(Inference& inference, const Signature& signature,
                                    const std::vector<ScriptTrial>& trials, WrittenScript& written, std::string& why) {
  const jit::Module module =
      trace(inference, signature, written.arguments, trials.front().inputs, /*one_sample=*/!written.any_count);
  jit::Module program = loaded(saved(module, "{}"));
  written.largest_difference = 0.0;
  for (const ScriptTrial& trial : trials) {
    if (!written.any_count && !has_one_sample(signature, trial)) continue;
    const double found = difference(program, inference, signature, trial);
    if (!(found <= tolerance)) {
      std::ostringstream text;
      text << "on " << trial.what << " its trace ";
      std::isfinite(found) ? text << "is off by " << found << " of the largest value" : text << "gives something else";
      why = text.str() + ": it decides by values, or computes with code that LibTorch does not see";
      return std::nullopt;
    }
    written.largest_difference = std::max(written.largest_difference, found);
  }
  return module;
}

}  // namespace

WrittenScript write_torchscript(Inference& inference, const TrainedModel& trained,
                                const std::vector<ScriptTrial>& trials, const std::filesystem::path& file) {
  if (!inference.target()) {
    throw cannot_trace(inference,
                       "its plugin offers no headroom.predict/1, and so its outputs may need what is to be predicted");
  }
  const Signature signature(inference);
  if (signature.inputs.empty() || signature.outputs.empty()) throw cannot_trace(inference, "it predicts from nothing");
  WrittenScript written;
  for (const size_t i : signature.inputs) written.arguments.push_back(inference.inputs()[i].name);
  written.arguments = argument_names(written.arguments);
  for (const size_t i : signature.outputs) written.outputs.push_back(inference.outputs()[i].name);
  std::string why;
  std::optional<jit::Module> module;
  try {
    written.any_count = true;
    module = agreeing(inference, signature, trials, written, why);
    if (!module) {
      written.any_count = false;
      module = agreeing(inference, signature, trials, written, why);
    }
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const c10::Error& problem) {
    throw cannot_trace(inference, first_line(problem.what_without_backtrace()));
  } catch (const jit::ErrorReport& problem) {
    throw cannot_trace(inference, first_line(problem.what()));
  }
  if (!module) throw cannot_trace(inference, why);
  write_file_atomically(file, saved(*module, facts(inference, trained, signature, written)));
  return written;
}

}  // namespace headroom
