#include "emg_hdf5.hpp"

HEADROOM_PLUGIN(.id = "emg_hdf5", .version = "1.0",
                .summary = "EMG with joint angles, recordings in the emg2pose HDF5 layout",
                .interfaces = {headroom::sdk::datasource<emg_hdf5::EmgSource>()});
