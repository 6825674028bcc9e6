#include "dual_arm_hdf5.hpp"

HEADROOM_PLUGIN(.id = "dual_arm_hdf5", .version = "1.0",
                .summary = "Dual-arm demonstrations with cameras, episodes in the ALOHA HDF5 layout",
                .interfaces = {headroom::sdk::datasource<dual_arm_hdf5::DualArmSource>()});
