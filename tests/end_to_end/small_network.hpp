// The head of an experiment, a tds_lstm that trains in a second; and made recordings for it, which are its rest.
#pragma once

#include <filesystem>

namespace headroom {

inline constexpr const char* small_network = R"(
[experiment]
name = "trial"
device = "cpu"
threads = 1

[model]
plugin = "tds_lstm"

[model.options]
tds_stages = [{ in_conv_kernel_width = 5, in_conv_stride = 2, num_blocks = 1, channels = 4, feature_width = 4, kernel_width = 5 }]
decoder_hidden_size = 16
decoder_num_layers = 1
)";

inline constexpr const char* small_recordings = R"(
[data]
source = "emg_hdf5"
num_workers = 0
max_samples_for_normalize = 20
split = { train = 0.75, val = 0.25, test = 0.0 }
[data.options]
path = "made"
window_size = 200
stride = 100
splits = "none"
[data.synth]
sessions = 4
seconds = 1.0
[train]
max_steps = 2
batch_size = 4
)";

// One of the recordings below `folder`.
inline std::filesystem::path a_recording(const std::filesystem::path& folder) {
  std::filesystem::path found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".hdf5") found = entry.path();
  return found;
}

}  // namespace headroom
