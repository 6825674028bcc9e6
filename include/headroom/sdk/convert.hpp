// headroom.convert/1 of a datasource, named in HEADROOM_PLUGIN beside it:
//
//   .interfaces = {headroom::sdk::datasource<Source>(), headroom::sdk::convert<Source>()}
//
//   class Source {
//     static OptionList convert_options();  // keys of --set
//     static std::vector<Piece> pieces(const Host& host, const Options& options, const std::filesystem::path& path);
//     static void convert(const Host& host, const Options& options, const std::filesystem::path& path,
//                         const std::filesystem::path& piece, const std::filesystem::path& file);
//   };
//
// headroom/convert.h has the contract.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/convert.h"
#include "headroom/datasource.hpp"

namespace headroom::sdk {

struct Piece {
  std::filesystem::path path;  // of what is to be converted
  std::string file;            // what it becomes, below --out: "train/a.hdf5"
};

namespace detail {

template <class T>
struct ConvertTable {
  static const hr_options* options() {
    static const OptionStorage* storage = new OptionStorage(T::convert_options());
    return storage->table();
  }
  static hr_status list(const hr_host* host, const hr_value* values, const char* path,
                        int32_t (*visit)(void*, const char*, const char*), void* context, hr_error* error) noexcept {
    return guard(error, [&] {
      for (const Piece& piece : T::pieces(Host(host), Options(options(), values), path)) {
        if (visit(context, piece.path.c_str(), piece.file.c_str()) != 0) return;
      }
    });
  }
  static hr_status write(const hr_host* host, const hr_value* values, const char* path, const char* piece,
                         const char* file, hr_error* error) noexcept {
    return guard(error, [&] { T::convert(Host(host), Options(options(), values), path, piece, file); });
  }
};

}  // namespace detail

template <class T>
constexpr Interface convert() {
  return {.find = [](std::string_view id) -> const void* {
    if (id != HR_CONVERT) return nullptr;
    static const hr_convert table{sizeof(hr_convert), 0, detail::ConvertTable<T>::options(),
                                  detail::ConvertTable<T>::list, detail::ConvertTable<T>::write};
    return &table;
  }};
}

}  // namespace headroom::sdk
