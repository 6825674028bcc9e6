#include "source.hpp"

HEADROOM_PLUGIN(.id = "hdf5", .version = "1.0",
                .summary = "HDF5 and MATLAB v7.3 files of any layout, described in the experiment file",
                .interfaces = {headroom::sdk::datasource<hdf5_source::Source>()});
