// What is asked of libhdf5 about a file, and the answers, as messages between a process and the child that asks for it.
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
  std::string path = {};       // of the file
  std::string object = {};     // dataset or group, absolute
  std::string attribute = {};  // its name
  CopyRequest copy = {};
  std::string folder = {};  // relative paths start here; the asking side fills it in
};

struct Hdf5Answer {
  hr_status status = HR_OK;
  std::string sentence;       // where status is not HR_OK
  bool cannot_write = false;  // it is the fault of what was to be written
  ArrayPlan plan;
  std::vector<Hdf5Name> names;
  std::vector<std::string> strings;
  Survey survey;
  hr_attribute attribute{};
};

// Opens the file, answers, closes it. Failures become status and sentence. Takes Hdf5Lock.
Hdf5Answer answer_here(const Hdf5Question& question, bool may_print);

std::string to_bytes(const Hdf5Question& question);
std::string to_bytes(const Hdf5Answer& answer);
// Throw std::runtime_error for what is no such message.
Hdf5Question question_from(std::span<const char> bytes);
Hdf5Answer answer_from(std::span<const char> bytes);

}  // namespace headroom
