// One file that a test writes, and the datasource hdf5 on it.
#pragma once

#include <utility>

#include "hdf5_source.hpp"

namespace headroom {

class OneHdf5File : public Hdf5Folder {
 protected:
  explicit OneHdf5File(std::string name) : name_(std::move(name)) {}
  void SetUp() override {
    Hdf5Folder::SetUp();
    const Hdf5Lock lock;
    const Handle file = create_file(path());
    write(file.get());
  }
  virtual void write(hid_t file) const = 0;

  std::filesystem::path path() const { return folder_ / name_; }
  std::shared_ptr<const Source> open_file(const std::string& options) const { return open_hdf5(path(), options); }
  // What opening says; "" when it opens.
  std::string refusal(const std::string& options, Exit* code = nullptr) const {
    return sentence(path(), options, code);
  }

 private:
  std::string name_;
};

// Single rows of a file, of one field that a test writes as TOML.
class OneHdf5Field : public OneHdf5File {
 protected:
  OneHdf5Field() : OneHdf5File("a.h5") {}
  static std::string with(const std::string& field) { return "sample = \"rows\"\nfields = [ { " + field + " } ]"; }
  std::string says(const std::string& field, Exit* code = nullptr) const { return refusal(with(field), code); }
};

}  // namespace headroom
