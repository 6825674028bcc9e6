// The layout of a dataset: its shape and types in the file, and the record that a read gives.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "arrays/hdf5.hpp"
#include "headroom/abi.h"

namespace headroom {

// A member of a compound type, or the element of a plain dataset.
struct ArrayMember {
  std::string name;
  std::string type_name;      // for sentences, also of a type that cannot be read
  DLDataType dtype{0, 0, 1};  // bits 0: a type that convert() does not know
  bool big_endian = false;
  std::vector<uint64_t> shape;  // of an array member
  uint64_t values = 1;          // product of shape
  uint64_t file_offset = 0;     // bytes into a record of the file
  uint64_t offset = 0;          // bytes into a record that was read
  bool readable() const { return dtype.bits != 0; }
};

struct ArrayLayout {
  std::vector<uint64_t> shape, chunk;  // chunk is empty where the dataset is not chunked
  bool compound = false;
  ArrayMember element;               // of a plain dataset
  std::vector<ArrayMember> members;  // of a compound
  ArrayMember list_value;            // of lists of variable length: one value; readable() nowhere else
  bool filtered = false;
  uint64_t element_bytes = 0;    // of a record in the file
  uint64_t record_bytes = 0;     // of a record that was read
  bool as_in_file = false;       // both are the same bytes
  Handle memory_type;            // libhdf5's type of a record that was read
  uint64_t chunk_bytes() const;  // decoded bytes of one chunk; 0 where there are no chunks
};

// The layout of an open dataset. Throws sdk::Error where it cannot be read at all: a filter that is not available, more
// than 8 axes, records above 64 MiB, fewer bytes stored than its shape needs. `what` names dataset and file in the
// sentence. REQUIRES Hdf5Lock.
ArrayLayout read_layout(hid_t dataset, const std::string& what);

}  // namespace headroom
