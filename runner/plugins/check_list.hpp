// A list of checks and their results.
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace headroom {

struct CheckResult {
  enum class Outcome { ok, fail, skip };
  Outcome outcome = Outcome::ok;
  std::string name;      // what was checked
  std::string sentence;  // what is wrong and what to do, or why it was skipped; "" when ok
};

// Thrown by a check that does not apply.
struct DoesNotApply {
  std::string reason;
};

// [control]
class CheckList {
 public:
  // Runs `body` and adds the result. A std::exception makes the check fail; its text is the sentence. Returns false
  // where it failed.
  bool check(std::string name, const std::function<void()>& body) {
    CheckResult result{CheckResult::Outcome::ok, std::move(name), {}};
    try {
      body();
    } catch (const DoesNotApply& skip) {
      result.outcome = CheckResult::Outcome::skip;
      result.sentence = skip.reason;
    } catch (const std::exception& problem) {
      result.outcome = CheckResult::Outcome::fail;
      result.sentence = problem.what();
    }
    results_.push_back(std::move(result));
    return results_.back().outcome != CheckResult::Outcome::fail;
  }

  std::vector<CheckResult> take() { return std::move(results_); }

 private:
  std::vector<CheckResult> results_;
};

}  // namespace headroom
