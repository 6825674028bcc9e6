// headroom.synth/1: made sequences of moving textures.
#include <cmath>

#include "camera.hpp"
#include "spike_hdf5.hpp"

namespace spike_hdf5 {

namespace {

using namespace sdk::literals;

struct Plan {
  CameraPlan camera;
  uint64_t seed = 0, sequences = 0, frames = 0;
  double speed = 0.0;
  bool compact = true;
};

Plan plan_of(const sdk::Options& options) {
  const auto whole = [&](const char* name) { return static_cast<uint64_t>(options.i64(name)); };
  const Plan plan{{{whole("height"), whole("width")}, whole("bins"), whole("steps_per_bin"), whole("spike_factor")},
                  whole("seed"),
                  whole("sequences"),
                  whole("frames"),
                  options.f64("speed"),
                  options.string("storage") == "compact"};
  const uint64_t factor = plan.camera.spike_factor;
  if (plan.camera.frame.height % factor != 0 || plan.camera.frame.width % factor != 0) {
    sdk::invalid("frames of " + shown(plan.camera.frame) + " cannot be divided by spike_factor = " +
                 std::to_string(factor) + "; choose height and width that can");
  }
  return plan;
}

// Rows of uint8 where `compact`, else of float32.
class Storage {
 public:
  Storage(sdk::ArrayWriter& writer, const char* name, std::vector<uint64_t> shape, bool compact)
      : writer_(writer), compact_(compact) {
    id_ = writer.dataset({.dataset = name, .shape = shape, .dtype = compact ? sdk::u8 : sdk::f32});
  }
  void append(const std::vector<float>& pixels) {
    if (!compact_) return writer_.append(id_, pixels.data(), 1);
    bytes_.clear();
    for (const float value : pixels) bytes_.push_back(static_cast<uint8_t>(std::lround(255.0f * value)));
    writer_.append(id_, bytes_.data(), 1);
  }
  void append(const std::vector<uint8_t>& counts) {
    if (compact_) return writer_.append(id_, counts.data(), 1);
    floats_.assign(counts.begin(), counts.end());
    writer_.append(id_, floats_.data(), 1);
  }

 private:
  sdk::ArrayWriter& writer_;
  bool compact_;
  uint32_t id_ = 0;
  std::vector<uint8_t> bytes_;
  std::vector<float> floats_;
};

void write_sequence(const sdk::Host& host, const Plan& plan, uint64_t number, const std::filesystem::path& file) {
  const CameraPlan& of = plan.camera;
  sdk::ArrayWriter writer(host, file);
  const std::vector<uint64_t> images = {plan.frames, of.frame.height, of.frame.width, 3};
  Storage blur(writer, "/blur", images, plan.compact), sharp(writer, "/sharp", images, plan.compact);
  Storage voxel(writer, "/voxel",
                {plan.frames, of.bins, of.frame.height / of.spike_factor, of.frame.width / of.spike_factor},
                plan.compact);
  const uint64_t key = hr_sample_key(plan.seed, 1, 0, number);
  Camera camera(Scene(key, of.frame, plan.speed), of, key);
  for (uint64_t frame = 0; frame < plan.frames; ++frame) {
    host.throw_if_cancelled();
    const Exposure& exposure = camera.next();
    blur.append(exposure.blur);
    sharp.append(exposure.sharp);
    voxel.append(exposure.voxel);
  }
  writer.commit();
}

std::string file_name(uint64_t number) {
  std::string digits = std::to_string(number);
  if (digits.size() < 4) digits.insert(0, 4 - digits.size(), '0');
  return "seq_" + digits + ".hdf5";
}

}  // namespace

sdk::OptionList SpikeSource::synth_options() {
  using namespace sdk;
  return {
      opt_i64("sequences").def(10).min(1).max(100000).help("sequences to make"),
      opt_i64("frames").def(10).min(1).max(1000000).help("frames of each"),
      opt_i64("height").def(96).min(8).max(16384).help("of a frame, in pixels"),
      opt_i64("width").def(96).min(8).max(16384).help("of a frame, in pixels"),
      opt_i64("bins").def(8).min(1).max(1024).help("of a frame's voxel"),
      opt_i64("steps_per_bin").def(4).min(1).max(255).help("times that light is looked at; a pixel fires once at most"),
      opt_i64("spike_factor").def(1).min(1).max(16).help("frame pixels along the side of a spike pixel"),
      opt_f64("speed").def(6.0).min(0.0).max(1000.0).help("of the background, on average, in pixels a frame"),
      opt_string("storage")
          .def("compact")
          .choices({"compact", "float32"})
          .help("uint8, or float32 of four times the "
                "size"),
      opt_i64("seed").def(0).help("another seed, other scenes"),
  };
}

void SpikeSource::synthesise(const sdk::Host& host, const sdk::Options& options, const std::filesystem::path& folder) {
  const Plan plan = plan_of(options);
  for (uint64_t number = 0; number < plan.sequences; ++number)
    write_sequence(host, plan, number, folder / file_name(number));
}

}  // namespace spike_hdf5
