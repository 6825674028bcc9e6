// Reads an ELF shared library as a file, without loading it. Any byte may be wrong: every offset is checked before use.
#pragma once

#include <cstdint>
#include <elf.h>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace headroom {

class ElfFile {
 public:
  // Error(plugin) unless it is a whole shared library for this machine; the sentence says what is wrong.
  explicit ElfFile(const std::filesystem::path& path);

  const std::vector<Elf64_Phdr>& segments() const { return segments_; }
  std::vector<char> content(const Elf64_Phdr& segment);

  [[noreturn]] void refuse(const std::string& sentence) const;

 private:
  friend struct ElfFacts;
  bool read(uint64_t offset, uint64_t bytes, void* to);
  void read_segments();

  std::filesystem::path path_;
  std::ifstream stream_;
  uint64_t bytes_ = 0;
  Elf64_Ehdr header_{};
  std::vector<Elf64_Phdr> segments_;
};

// What the dynamic linker would see; empty if the file has no section table.
struct ElfFacts {
  std::vector<std::string> exported;   // symbols others may bind to
  std::vector<std::string> undefined;  // symbols it takes from others
  std::vector<std::string> needed;     // libraries
  bool has_symbols = false;
  bool nodelete = false;  // stays mapped after dlclose

  static ElfFacts of(const std::filesystem::path& path);  // as ElfFile
};

}  // namespace headroom
