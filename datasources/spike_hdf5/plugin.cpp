#include "headroom/sdk/convert.hpp"
#include "headroom/sdk/predict_source.hpp"
#include "spike_hdf5.hpp"

HEADROOM_PLUGIN(.id = "spike_hdf5", .version = "1.0",
                .summary = "Clips of blurred and sharp frames with spike voxels, for deblurring",
                .interfaces = {headroom::sdk::datasource<spike_hdf5::SpikeSource>(),
                               headroom::sdk::convert<spike_hdf5::SpikeSource>(),
                               headroom::sdk::predict<headroom::sdk::SourceSide<spike_hdf5::SpikeSource>>()});
