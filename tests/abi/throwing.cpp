// A plugin whose entries throw, behind tables that promise they do not.
#include <cstring>
#include <stdexcept>

#include "headroom/abi.h"

namespace {

template <class Entry, class Real>
Entry as_promised(Real* real) {
  return reinterpret_cast<Entry>(real);
}

hr_status open_throws(const hr_host*, const hr_value*, hr_source**, hr_error*) {
  throw std::runtime_error("no such thing as a file");
}
void nothing(hr_source*) {}
#ifdef LOAD_THROWS
[[maybe_unused]] const int registered = []() -> int { throw std::runtime_error("too early"); }();
#endif
void throws_int() { throw 42; }

const hr_datasource datasource = [] {
  hr_datasource table{};
  table.struct_size = sizeof table;
  table.open = as_promised<decltype(table.open)>(&open_throws);
  table.close = as_promised<decltype(table.close)>(&nothing);
  table.field_count = as_promised<decltype(table.field_count)>(&throws_int);
  table.field = as_promised<decltype(table.field)>(&throws_int);
  table.split_count = as_promised<decltype(table.split_count)>(&throws_int);
  table.split = as_promised<decltype(table.split)>(&throws_int);
  table.length = as_promised<decltype(table.length)>(&throws_int);
  table.group_count = as_promised<decltype(table.group_count)>(&throws_int);
  table.group = as_promised<decltype(table.group)>(&throws_int);
  table.file_count = as_promised<decltype(table.file_count)>(&throws_int);
  table.file = as_promised<decltype(table.file)>(&throws_int);
  table.reader_open = as_promised<decltype(table.reader_open)>(&throws_int);
  table.reader_close = as_promised<decltype(table.reader_close)>(&throws_int);
  table.read = as_promised<decltype(table.read)>(&throws_int);
  return table;
}();

const void* get_interface(const char* id) {
  if (std::strcmp(id, HR_STATE) == 0) throws_int();
  return std::strcmp(id, HR_DATASOURCE) == 0 ? &datasource : nullptr;
}

[[maybe_unused]] hr_status init_throws(const hr_host*, hr_error*) { throw std::logic_error("not today"); }

}  // namespace

extern "C" {
extern __attribute__((visibility("default"))) const hr_plugin headroom_plugin;
const hr_plugin headroom_plugin = {HR_MAGIC,
                                   HR_ABI_MAJOR,
                                   HR_ABI_MINOR,
                                   sizeof(hr_plugin),
                                   0,
                                   "throwing",
                                   "1.0",
                                   "throws out of every entry",
                                   nullptr,
                                   0,
                                   0,
                                   0,
#ifdef INIT_THROWS
                                   as_promised<decltype(hr_plugin::init)>(&init_throws),
#else
                                   nullptr,
#endif
                                   as_promised<decltype(hr_plugin::get_interface)>(&get_interface)};
}
