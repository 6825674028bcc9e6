// headroom.model_files/1: the files that a model is made of beside its plugin.
#pragma once

#include <map>
#include <string>

#include "plugins/library.hpp"
#include "plugins/session.hpp"

namespace headroom {

// A digest of each file's content, by the name that the plugin gives it; empty without the interface. Error(bad_input)
// or Error(data) where a file cannot be read. [control]
std::map<std::string, std::string> model_file_digests(const Library& library, const OptionValues& options,
                                                      Session& session);

}  // namespace headroom
