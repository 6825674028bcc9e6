#include "hdf5_source.hpp"
