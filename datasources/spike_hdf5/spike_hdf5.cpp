#include "spike_hdf5.hpp"

namespace spike_hdf5 {

namespace {

constexpr uint64_t kStep = 8;  // networks halve frames three times

std::string images_of(const Facts& facts) { return facts.float_images ? "float32" : "uint8"; }

SpikeCamera camera_of(const sdk::Options& options, Layout layout) {
  const auto chosen = [&](const char* name, uint64_t otherwise) {
    const auto set = static_cast<uint64_t>(options.i64(name));
    return set != 0 ? set : otherwise;
  };
  const Size usual = spike_size_of(layout);
  const SpikeCamera camera{{chosen("spike_height", usual.height), chosen("spike_width", usual.width)},
                           options.boolean("flip_vertical"),
                           static_cast<uint64_t>(options.i64("spike_frames")),
                           static_cast<uint64_t>(options.i64("spike_middle"))};
  if (camera.middle > 0 && camera.frames == 0) {
    sdk::invalid("spike_middle = " + std::to_string(camera.middle) +
                 " names the middle of the spike frames that are read; say with spike_frames how many they are");
  }
  if (camera.size.width % 8 != 0) {
    sdk::invalid("spike_width = " + std::to_string(camera.size.width) +
                 " is no multiple of 8, so that rows of a stream would not begin with a byte; set it to the camera's");
  }
  return camera;
}

}  // namespace

sdk::OptionList SpikeSource::options() {
  using namespace sdk;
  OptionList list = {
      opt_path("path").required().help("folder of sequences (or of train/, val/, test/), or one sequence's file"),
      opt_i64("clip_length").def(6).min(1).max(1000).help("neighbouring frames of a sample"),
      opt_i64("clip_stride").def(1).min(1).max(100000).help("frames from the start of a clip to that of the next"),
      opt_i64("crop_size").def(0).min(0).max(65536).help("pixels, a multiple of 8; 0: whole frames"),
      opt_bool("random_crop").def(true).help("in training, from anywhere in the frame; else from its middle"),
      opt_bool("random_flip").def(true).help("in training, mirrored, flipped and transposed, each half of the time"),
      opt_string("voxel_transform").def("log1p").choices({"log1p", "none"}).help("of the spike counts"),
      opt_f64("voxel_mean").def(0.0).help("taken off the transformed counts"),
      opt_f64("voxel_std").def(1.0).min(1e-6).help("the rest is divided by it"),
  };
  for (const Option& option : sequence_options()) list.push_back(option);
  return list;
}

sdk::OptionList SpikeSource::sequence_options() {
  using namespace sdk;
  return {
      opt_bool("use_blur").def(true).help("false: spikes and sharp frames only, there are no blurred ones"),
      opt_bool("use_voxel").def(true).help("false: frames only, there are no voxels"),
      opt_i64("num_bins").def(0).min(0).max(1024).help("of a voxel; 0: as many as the files have, 32 of raw streams"),
      opt_string("layout").def("auto").choices({"auto", "hdf5", "spk_gopro", "s_sdm", "pairs"}).help("of the folder"),
      opt_i64("spike_height")
          .def(0)
          .min(0)
          .max(65536)
          .help("of raw streams; 0: 360 of spk_gopro, 180 of s_sdm, the picture's of pairs"),
      opt_i64("spike_width")
          .def(0)
          .min(0)
          .max(65536)
          .help("a multiple of 8; 0: 640 of spk_gopro, 320 of s_sdm, the picture's of pairs"),
      opt_i64("spike_frames").def(0).min(0).max(1000000).help("read of each raw stream; 0: all"),
      opt_i64("spike_middle").def(0).min(0).max(1000000).help("spike frame in their middle; 0: the stream's middle"),
      opt_bool("flip_vertical").def(true).help("raw streams are stored bottom-up"),
  };
}

Wanted SpikeSource::wanted_of(const sdk::Options& options, Layout layout) {
  const Wanted wanted{.blur = options.boolean("use_blur"),
                      .voxel = options.boolean("use_voxel"),
                      .bins = static_cast<uint64_t>(options.i64("num_bins")),
                      .camera = camera_of(options, layout)};
  if (wanted.blur && layout == Layout::pairs)
    sdk::invalid("spike streams with one picture each (layout pairs) have no blurred frames; set use_blur = false");
  if (!wanted.blur && !wanted.voxel)
    sdk::invalid("use_blur = false and use_voxel = false leave the sharp frames alone; set one of them to true");
  return wanted;
}

SpikeSource::SpikeSource(const sdk::Host& host, const sdk::Options& options) : host_(host) {
  selection_.clip_length = static_cast<uint64_t>(options.i64("clip_length"));
  selection_.clip_stride = static_cast<uint64_t>(options.i64("clip_stride"));
  selection_.crop_size = static_cast<uint64_t>(options.i64("crop_size"));
  selection_.random_crop = options.boolean("random_crop") && selection_.crop_size > 0;
  selection_.random_flip = options.boolean("random_flip");
  selection_.transform =
      VoxelTransform(options.string("voxel_transform") == "log1p", options.f64("voxel_mean"), options.f64("voxel_std"));
  if (selection_.crop_size % kStep != 0) {
    sdk::invalid("crop_size = " + std::to_string(selection_.crop_size) + " is no multiple of 8; set it to " +
                 std::to_string(selection_.crop_size / kStep * kStep + kStep) + ", or to 0 for whole frames");
  }

  const std::filesystem::path path = options.path("path");
  const Layout layout = layout_of(options.string("layout"), path);
  selection_.wanted = wanted_of(options, layout);
  for (SplitPlaces& found : find_sequences(host, layout, path)) {
    Selection::Split& split = selection_.splits.emplace_back();
    split.name = found.name;
    split.first_sample = {0};
    for (const Place& place : found.sequences) {
      host.throw_if_cancelled();
      add_sequence(split, place);
    }
  }
}

void SpikeSource::add_sequence(Selection::Split& split, const Place& place) {
  const auto sequence = open_sequence(host_, place, selection_.wanted);
  const Facts facts = sequence->facts();
  require_usable(facts, place.path);
  require_alike(facts, place.path);
  require_one_size(facts, place.path);
  for (std::filesystem::path& file : sequence->files()) files_.push_back(std::move(file));
  split.sequences.push_back({place, facts});
  split.first_sample.push_back(split.first_sample.back() + selection_.clips_of(facts));
}

void SpikeSource::require_one_size(const Facts& facts, const std::filesystem::path& file) const {
  if (selection_.crop_size > 0 || selection_.splits.front().sequences.empty()) return;
  const auto& [place, first] = selection_.splits.front().sequences.front();
  if (facts.frame == first.frame) return;
  bad_data(file, "its frames are " + shown(facts.frame) + ", " + shown(first.frame) + " in " + place.path.string() +
                     "; all must have one size: set crop_size to cut parts of one size out");
}

RecordedSequence SpikeSource::open_recording(const std::filesystem::path& path) const {
  const Place place = sequence_at(path);
  Wanted wanted = selection_.wanted;
  wanted.sharp = has_sharp(host_, place);
  wanted.like = selection_.splits.front().sequences.front().facts;
  auto sequence = open_sequence(host_, place, wanted);
  require_alike(sequence->facts(), place.path);
  return RecordedSequence(host_, std::move(sequence), wanted, selection_);
}

void SpikeSource::require_usable(const Facts& facts, const std::filesystem::path& file) const {
  if (facts.frames < selection_.clip_length) {
    sdk::invalid(file.string() + " has " + std::to_string(facts.frames) + (facts.frames == 1 ? " frame" : " frames") +
                 "; clip_length = " + std::to_string(selection_.clip_length) +
                 " needs more: lower it, or take the sequence out");
  }
  const uint64_t crop = selection_.crop_size;
  if (crop > facts.frame.height || crop > facts.frame.width) {
    sdk::invalid(file.string() + " has frames of " + shown(facts.frame) + "; crop_size = " + std::to_string(crop) +
                 " is larger: lower it, or set it to 0 for whole frames");
  }
  if (crop == 0 && (facts.frame.height % kStep != 0 || facts.frame.width % kStep != 0)) {
    sdk::invalid(file.string() + " has frames of " + shown(facts.frame) +
                 ", whose height and width must be multiples of 8; set crop_size to one, to cut such a part out");
  }
}

// Samples of all sequences go into one batch.
void SpikeSource::require_alike(const Facts& facts, const std::filesystem::path& file) const {
  if (selection_.splits.front().sequences.empty()) return;
  const auto& [place, first] = selection_.splits.front().sequences.front();
  const std::string other = " in " + place.path.string();
  if (facts.float_images != first.float_images) {
    bad_data(file, "its frames are " + images_of(facts) + ", " + images_of(first) + other +
                       "; all must have one type: `headroom data convert` makes them uint8");
  }
  if (facts.bins != first.bins) {
    bad_data(file, "voxel has " + std::to_string(facts.bins) + " bins, " + std::to_string(first.bins) + other +
                       "; all must have as many");
  }
}

std::vector<sdk::Field> SpikeSource::fields() const {
  const Facts& facts = selection_.splits.front().sequences.front().facts;
  const Size size = selection_.size_of(facts);
  const auto field = [&](const char* name, DLDataType dtype, uint64_t channels) {
    const auto extent = [](uint64_t count) { return static_cast<int64_t>(count); };
    return sdk::Field{
        .name = name,
        .dtype = dtype,
        .shape = {extent(selection_.clip_length), extent(channels), extent(size.height), extent(size.width)},
        .axes = {"time", "channel", "height", "width"},
        .channel_axis = 1};
  };
  const DLDataType image = facts.float_images ? sdk::f32 : sdk::u8;
  std::vector<sdk::Field> fields;
  if (selection_.wanted.blur) fields.push_back(field("blur", image, 3));
  fields.push_back(field("sharp", image, 3));
  if (selection_.wanted.voxel) fields.push_back(field("voxel", sdk::f32, facts.bins));
  return fields;
}

std::vector<std::string> SpikeSource::splits() const {
  std::vector<std::string> names;
  for (const auto& split : selection_.splits) names.push_back(split.name);
  return names;
}

uint64_t SpikeSource::length(uint32_t split) const { return selection_.splits[split].first_sample.back(); }

std::vector<sdk::Group> SpikeSource::groups(uint32_t split) const {
  const Selection::Split& chosen = selection_.splits[split];
  std::vector<sdk::Group> groups;
  for (std::size_t i = 0; i < chosen.sequences.size(); ++i) {
    groups.push_back(
        {chosen.sequences[i].place.name, chosen.first_sample[i], chosen.first_sample[i + 1] - chosen.first_sample[i]});
  }
  return groups;
}

}  // namespace spike_hdf5
