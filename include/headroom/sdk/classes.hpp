// How a model declares its class scores (headroom/classes.h), for metrics of classification.
//
//   std::vector<ClassScores> classes() const {
//     return {{.output = "scores", .count = 3, .field = "label"}};
//   }
//   void balance(const std::string& output, std::span<const uint64_t> counts);   // where .counted; may be left out
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headroom/classes.h"

namespace headroom::sdk {

struct ClassScores {
  std::string output = {};              // the name of a prediction: [samples, ..., classes]
  int64_t count = 0;                    // classes
  std::string field = {};               // the source's integer field that the target is made of; "": none
  std::vector<std::string> names = {};  // one for each class; {}: the source's names, else numbers
  bool counted = false;                 // balance() is called before a new run
};

namespace detail {

// A ClassScores in the form of the C table, which borrows from it.
class NativeScores {
 public:
  explicit NativeScores(const ClassScores& scores) : scores_(&scores) {
    for (const std::string& name : scores.names) names_.push_back(name.c_str());
  }
  const ClassScores& scores() const { return *scores_; }
  hr_class_scores native() const {
    return {sizeof(hr_class_scores), scores_->counted ? HR_CLASSES_COUNTED : 0u, static_cast<uint64_t>(scores_->count),
            scores_->field.empty() ? nullptr : scores_->field.c_str(), names_.empty() ? nullptr : names_.data()};
  }

 private:
  const ClassScores* scores_;
  std::vector<const char*> names_;
};

}  // namespace detail

}  // namespace headroom::sdk
