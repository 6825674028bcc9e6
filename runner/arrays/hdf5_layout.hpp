// What a dataset looks like in its file, and the record libhdf5 is asked for when it is read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "arrays/hdf5.hpp"
#include "headroom/abi.h"

namespace headroom {

// A member of a compound, or the plain element.
struct ArrayMember {
  std::string name;
  std::string type_name;      // for sentences, also of a type that cannot be read
  DLDataType dtype{0, 0, 1};  // bits 0: a type this host does not convert
  bool big_endian = false;
  std::vector<uint64_t> shape;  // of an array member
  uint64_t values = 1;          // product of shape
  uint64_t file_offset = 0;     // into the record in the file
  uint64_t offset = 0;          // into the record libhdf5 hands over
  bool readable() const { return dtype.bits != 0; }
};

struct ArrayLayout {
  std::vector<uint64_t> shape, chunk;  // chunk is empty where contiguous
  bool compound = false;
  ArrayMember element;               // of a plain dataset
  std::vector<ArrayMember> members;  // of a compound
  bool filtered = false;
  uint64_t element_bytes = 0;    // in the file
  uint64_t record_bytes = 0;     // in the record libhdf5 hands over
  bool as_in_file = false;       // that record is the file's, byte by byte
  Handle memory_type;            // of that record
  uint64_t chunk_bytes() const;  // of one chunk; 0 where contiguous
};

// [under Hdf5Lock] Throws sdk::Error for what cannot be read at all (filter not available, more than 8 axes, records
// above 64 MiB); `what` names dataset and file for the sentence.
ArrayLayout read_layout(hid_t dataset, const std::string& what);

}  // namespace headroom
