// libhdf5 in a child process. A damaged file may make libhdf5 crash, loop or take all memory; in the child that becomes
// an error of one sentence. The child is started with the first question, answers one at a time, and ends after 5 s
// without any.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "arrays/hdf5_object.hpp"
#include "arrays/hdf5_plan.hpp"
#include "arrays/hdf5_rewrite.hpp"
#include "arrays/inspect.hpp"

namespace headroom {

// A question about one file. Questions and answers travel as bytes (hdf5_questions.cpp).
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

// The answer to `question`. Waits while another thread's question is answered. Throws sdk::Error with the answer's
// status and sentence, CannotWrite where the fault is in what was to be written, and sdk::Error where the child died of
// the question. Where no child can be started, libhdf5 is asked in this process. REQUIRES that the thread does not hold
// Hdf5Lock. [any]
Hdf5Answer ask_hdf5(Hdf5Question question);

// For tests: the program that ask_hdf5() starts. Empty: libexec/headroom-hdf5 of this installation. [control]
void set_hdf5_child(const std::filesystem::path& program);

// The child's main loop: answers what comes through `socket`, until it is closed or nothing came for 5 s.
void answer_hdf5_questions(int socket);

}  // namespace headroom
