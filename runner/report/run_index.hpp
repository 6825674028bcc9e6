// An index of runs in a SQLite file, so that lists need not read every run's folder again. The folders are
// authoritative: an index that is deleted, damaged, locked, of another version or on a full disk costs time and nothing
// else.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "report/run_facts.hpp"

struct sqlite3;

namespace headroom {

class RunIndex {
 public:
  // Opens or makes it; a damaged one is replaced. nullopt: it is locked, or cannot be stored.
  static std::optional<RunIndex> open(const std::filesystem::path& file);
  RunIndex(RunIndex&& other) noexcept;
  RunIndex& operator=(RunIndex&&) = delete;
  ~RunIndex();

  struct Row {
    std::string stamp, facts;  // stamp_of() when the facts (JSON) were read
  };
  std::map<std::string, Row> rows() const;  // by folder; empty when it cannot be read

  // Applies all changes or none; returns false where that failed.
  bool update(const std::map<std::string, Row>& changed, const std::vector<std::string>& gone);

 private:
  explicit RunIndex(sqlite3* database) : database_(database) {}
  bool run(const char* sql) const;
  sqlite3* database_;
};

// The index of the runs below `root`, in the user's cache folder; empty when there is none.
std::filesystem::path index_file_of(const std::filesystem::path& root);

struct ListedRuns {
  std::vector<RunFacts> runs;
  size_t read_anew = 0;  // how many folders had to be read; the others came from the index
};

// Every run below `root`. `index`: empty for none.
ListedRuns list_runs(const std::filesystem::path& root, const std::filesystem::path& index);

}  // namespace headroom
