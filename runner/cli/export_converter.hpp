// What python3 is given to make another format of a TorchScript program of ours (export_python.cpp).
//   python3 -c SCRIPT onnx|pt2                  exit code 0: all that is needed is there; 17: no torch; 18: no onnx
//   python3 -c SCRIPT onnx|pt2 PROGRAM OUT      writes OUT, and a line of JSON: {"samples": "any", "difference": 1e-8}
// It tries what it wrote on made-up samples: any number of them where the program takes any, else one at a time. Where
// neither gives what the program gives, the last line on stderr says why.
#pragma once

namespace headroom {

inline constexpr const char* export_converter = R"python(
import sys
sys.path = [folder for folder in sys.path if folder]  # a json.py of the folder it runs in is not meant
import importlib.util, json, os, warnings

format, program, out = (sys.argv[1:] + ["", ""])[:3]
if importlib.util.find_spec("torch") is None: sys.exit(17)
if format == "onnx" and importlib.util.find_spec("onnx") is None: sys.exit(18)
if not program: sys.exit(0)
answer = os.dup(1)
os.dup2(2, 1)  # PyTorch prints graphs
warnings.simplefilter("ignore")
import logging
logging.disable(logging.CRITICAL)
import torch

extra = {"headroom.json": ""}
model = torch.jit.load(program, map_location="cpu", _extra_files=extra).eval()
for parameter in model.parameters(): parameter.requires_grad_(False)
facts = json.loads(extra["headroom.json"])
arguments = facts["arguments"]
outputs = [output["name"] for output in facts["gives"]]
normalizer = json.loads(facts.get("normalizer") or "[]") or []
generator = torch.Generator().manual_seed(1)

def measured(field):
    for one in normalizer:
        if one["field"] == field["name"]: return one["mean"], one["std"]
    channels = field.get("channels") or []
    return [c["mean"] for c in channels], [c["std"] for c in channels]

def made_up(field, samples):
    dtype = getattr(torch, field["dtype"])
    shape = [samples] + field["shape"]
    if not dtype.is_floating_point:
        high = 256 if dtype == torch.uint8 else 2
        return torch.randint(0, high, shape, generator=generator).to(dtype)
    mean, std = (torch.tensor(numbers, dtype=torch.float64) for numbers in measured(field))
    values = torch.randn(shape, generator=generator, dtype=torch.float64)
    if mean.numel() == 1: values = values * std + mean
    elif mean.numel() > 1 and field["shape"][field["channel_axis"]] == mean.numel():
        beside = [1] * len(shape)
        beside[1 + field["channel_axis"]] = mean.numel()
        values = values * std.view(beside) + mean.view(beside)
    return values.to(dtype)

def samples_of(count):
    return tuple(made_up(field, count) for field in facts["inputs"])

def listed(given):
    return [given] if isinstance(given, torch.Tensor) else list(given)

# The largest difference, over all outputs, of an output's largest value.
def difference(ask, counts):
    largest = 0.0
    for count in counts:
        given = samples_of(count)
        with torch.no_grad(): expected = listed(model(*given))
        found = listed(ask(*given))
        for a, b in zip(found, expected, strict=True):
            if a.shape != b.shape: return float("inf")
            if b.numel() == 0: continue
            a, b = a.to(torch.float64), b.to(torch.float64)
            off = ((a - b).abs().max() / b.abs().max().clamp_min(1e-30)).item()
            if not off <= largest: largest = off
    return largest

# As an ExportedProgram, with its example.
def exported(any_count):
    from torch._export.converter import TS2EPConverter
    given = samples_of(3 if any_count else 1)
    made = TS2EPConverter(model, given, {}).convert()
    if not any_count: return made, given
    samples = torch.export.Dim("samples")
    return torch.export.export(made.module(check_guards=False), given,
                               dynamic_shapes=tuple({0: samples} for _ in given)), given

# max_pool2d(x, [3]) is max_pool2d(x, [3, 3]), but not in ONNX.
def spell_out_extents(module):
    for node in module.graph.nodes:
        axes = next((n for n in (1, 2, 3) if f"{n}d." in str(node.target)), 0)
        if node.op != "call_function" or axes == 0: continue
        is_short = lambda one: isinstance(one, (list, tuple)) and len(one) == 1
        node.args = tuple(list(one) * axes if is_short(one) else one for one in node.args)
    module.recompile()

def as_onnx(any_count):
    import onnx
    made, given = exported(any_count)
    axes = {name: {0: "samples"} for name in arguments + outputs} if any_count else {}
    # Not of the script itself: its tensors have no types, which many operators need.
    module = made.module(check_guards=False)
    spell_out_extents(module)
    class Model(torch.nn.Module):  # the module itself refuses train(), and has hooks that cannot be traced
        def forward(self, *given): return module.forward(*given)
    torch.onnx.export(Model(), given, out, dynamo=False, input_names=arguments,
                      output_names=outputs, dynamic_axes=axes)
    written = onnx.load(out)
    onnx.helper.set_model_props(written, {"headroom.json": json.dumps(facts)})
    onnx.save(written, out)
    try:
        import onnxruntime
        session = onnxruntime.InferenceSession(out, providers=["CPUExecutionProvider"])
    except ImportError:
        from onnx.reference import ReferenceEvaluator
        session = ReferenceEvaluator(out)
    taken = {one.name for one in written.graph.input}
    def ask(*given):
        found = session.run(None, {name: tensor.numpy() for name, tensor in zip(arguments, given) if name in taken})
        return [torch.from_numpy(one) for one in found]
    return ask

def as_pt2(any_count):
    torch.export.save(exported(any_count)[0], out, extra_files={"headroom.json": json.dumps(facts)})
    return torch.export.load(out).module()

convert = as_onnx if format == "onnx" else as_pt2
reason = ""
for any_count in ([True, False] if facts["samples"] == "any" else [False]):
    facts["samples"] = "any" if any_count else "1"
    try:
        off = difference(convert(any_count), [1, 2, 5] if any_count else [1, 1])
    except Exception as problem:
        reason = type(problem).__name__ + ": " + " ".join(str(problem).split())
        continue
    if off <= 1e-5:
        os.write(answer, (json.dumps({"samples": facts["samples"], "difference": off}) + "\n").encode())
        sys.exit(0)
    reason = f"it gives something else than the model (off by {off:.1e} of the largest value)"
sys.exit(reason[:250])
)python";

}  // namespace headroom
