#include "dual_arm_hdf5.hpp"
#include "headroom/sdk/predict_source.hpp"

namespace {

using namespace headroom::sdk;
using dual_arm_hdf5::DualArmSource;

}  // namespace

HEADROOM_PLUGIN(.id = "dual_arm_hdf5", .version = "1.0",
                .summary = "Dual-arm demonstrations with cameras, episodes in the ALOHA HDF5 layout",
                .interfaces = {datasource<DualArmSource>(), predict<SourceSide<DualArmSource>>()});
