#include "spike_hdf5.hpp"

namespace {

using namespace headroom::sdk;
using spike_hdf5::SpikeSource;

}  // namespace

HEADROOM_PLUGIN(.id = "spike_hdf5", .version = "1.0",
                .summary = "Clips of blurred and sharp frames with spike voxels, for deblurring",
                .interfaces = {datasource<SpikeSource>(), convert<SpikeSource>()});
