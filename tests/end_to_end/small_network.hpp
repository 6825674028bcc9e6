// The head of an experiment: a tds_lstm that trains in a second.
#pragma once

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

}  // namespace headroom
