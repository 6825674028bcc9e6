// An experiment: an act_policy on synthetic episodes of two arms and two cameras, which trains in a second.
#pragma once

namespace headroom {

inline constexpr const char* small_policy = R"(
[experiment]
name = "trial"
device = "cpu"
threads = 1
[model]
plugin = "act_policy"
[model.options]
chunk_size = 5
hidden_dim = 16
dim_feedforward = 24
nheads = 4
enc_layers = 1
dec_layers = 1
backbone_widths = [4, 6, 8, 10]
[data]
source = "dual_arm_hdf5"
num_workers = 0
[data.options]
path = "made"
samples_per_episode = 4
[data.synth]
episodes = 3
steps = 17
cameras = 2
height = 24
width = 32
[train]
epochs = 1
batch_size = 4
)";

}  // namespace headroom
