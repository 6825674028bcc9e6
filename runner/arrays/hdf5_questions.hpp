// The messages between a process and its libhdf5 child: questions about one file, and their answers.
#pragma once

#include <string>
#include <vector>

#include "arrays/hdf5_copy.hpp"
#include "arrays/hdf5_object.hpp"
#include "arrays/hdf5_plan.hpp"
#include "arrays/hdf5_survey.hpp"

namespace headroom {

struct Hdf5Question {
  enum class Kind : uint8_t { plan, list, attribute, strings, survey, copy };
  Kind kind{};
  std::string path = {};       // the file
  std::string object = {};     // absolute name of a dataset or group: for all kinds but survey and copy
  std::string attribute = {};  // its name, for `attribute`, and for `strings` that are an attribute's
  CopyRequest copy = {};       // for `copy`
  std::string folder = {};     // where relative paths start; ask_hdf5() sets it
};

// What the kind of question asks for is set, where status is HR_OK.
struct Hdf5Answer {
  hr_status status = HR_OK;
  std::string sentence;       // the error, where status is not HR_OK
  bool cannot_write = false;  // the error is in what was to be written: CannotWrite
  ArrayPlan plan;
  std::vector<Hdf5Name> names;
  std::vector<std::string> strings;
  Survey survey;
  hr_attribute attribute{};
};

// Asks libhdf5 in this process. Every failure becomes a status and a sentence. Takes Hdf5Lock. `may_print`: as for
// list_chunks().
Hdf5Answer answer_here(const Hdf5Question& question, bool may_print);

std::string to_bytes(const Hdf5Question& question);
std::string to_bytes(const Hdf5Answer& answer);
// Throw std::runtime_error where `bytes` are not such a message.
Hdf5Question question_from(std::span<const char> bytes);
Hdf5Answer answer_from(std::span<const char> bytes);

}  // namespace headroom
