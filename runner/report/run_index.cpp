#include "report/run_index.hpp"

#include <sqlite3.h>
#include <utility>

#include "config/digest.hpp"
#include "config/user_cache.hpp"
#include "memory/file_memory.hpp"
#include "record/run_folder.hpp"

namespace headroom {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int index_format = 1;  // of the rows; another one's are thrown away

// A prepared statement. One that could not be prepared fails in step(); SQLite takes null in all other calls.
class Statement {
 public:
  Statement(sqlite3* database, const char* sql) { sqlite3_prepare_v2(database, sql, -1, &statement_, nullptr); }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(int place, const std::string& text) {
    // SQLITE_TRANSIENT: SQLite copies the text, which may be gone before step().
    sqlite3_bind_text(statement_, place, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
    return *this;
  }
  int step() { return statement_ == nullptr ? SQLITE_ERROR : sqlite3_step(statement_); }
  bool done() {
    // The reset makes the statement ready for other values.
    const bool ok = step() == SQLITE_DONE;
    sqlite3_reset(statement_);
    return ok;
  }
  std::string text(int column) const {
    const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_, column));
    return bytes == nullptr ? "" : std::string(bytes, static_cast<size_t>(sqlite3_column_bytes(statement_, column)));
  }
  int number(int column) const { return sqlite3_column_int(statement_, column); }

 private:
  sqlite3_stmt* statement_ = nullptr;
};

sqlite3* connect(const fs::path& file) {
  sqlite3* database = nullptr;
  if (sqlite3_open_v2(file.c_str(), &database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr) == SQLITE_OK) {
    // Milliseconds. A list does not wait longer for another one that writes: it reads the folders instead.
    sqlite3_busy_timeout(database, 300);
    return database;
  }
  sqlite3_close(database);
  return nullptr;
}

enum class Found { usable, locked, damaged };

Found prepare(sqlite3* database, bool local) {
  const auto run = [&](const char* sql) { return sqlite3_exec(database, sql, nullptr, nullptr, nullptr); };
  const auto judge = [](int code) {
    // The low byte is the primary code; extended codes say more in the bytes above.
    return (code & 0xff) == SQLITE_BUSY || (code & 0xff) == SQLITE_LOCKED ? Found::locked : Found::damaged;
  };
  int code = run(local ? "PRAGMA journal_mode=WAL" : "PRAGMA journal_mode=DELETE");
  if (code != SQLITE_OK) return judge(code);
  // What a power cut takes is read again, so speed counts more here.
  run("PRAGMA synchronous=NORMAL");
  Statement version(database, "PRAGMA user_version");
  if (version.step() != SQLITE_ROW) return judge(sqlite3_errcode(database));
  // A new file says 0.
  if (version.number(0) != index_format) {
    code = run("DROP TABLE IF EXISTS runs");
    if (code != SQLITE_OK) return judge(code);
  }
  code = run("CREATE TABLE IF NOT EXISTS runs (folder TEXT PRIMARY KEY, stamp TEXT NOT NULL, facts TEXT NOT NULL)");
  if (code != SQLITE_OK) return judge(code);
  code = run(("PRAGMA user_version=" + std::to_string(index_format)).c_str());
  return code == SQLITE_OK ? Found::usable : judge(code);
}

void remove_index(const fs::path& file) {
  std::error_code ignored;
  // With SQLite's own files beside it: write-ahead log, its shared memory, rollback journal.
  for (const char* end : {"", "-wal", "-shm", "-journal"}) fs::remove(fs::path(file.string() + end), ignored);
}

std::optional<RunFacts> facts_of(const std::string& text) {
  try {
    return RunFacts::from_json(Json::parse(text));
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

}  // namespace

std::optional<RunIndex> RunIndex::open(const fs::path& file) {
  std::error_code ignored;
  fs::create_directories(file.parent_path(), ignored);
  // Once more after a damaged file was removed.
  for (int attempt = 0; attempt < 2; ++attempt) {
    sqlite3* database = connect(file);
    if (database == nullptr) return std::nullopt;
    // SQLite's WAL needs shared memory, which network file systems lack.
    const Found found = prepare(database, storage_of(file) != Storage::other);
    if (found == Found::usable) return RunIndex(database);
    sqlite3_close(database);
    if (found == Found::locked) return std::nullopt;
    remove_index(file);
  }
  return std::nullopt;
}

RunIndex::RunIndex(RunIndex&& other) noexcept : database_(std::exchange(other.database_, nullptr)) {}

RunIndex::~RunIndex() { sqlite3_close(database_); }

bool RunIndex::run(const char* sql) const {
  return sqlite3_exec(database_, sql, nullptr, nullptr, nullptr) == SQLITE_OK;
}

std::map<std::string, RunIndex::Row> RunIndex::rows() const {
  std::map<std::string, Row> rows;
  Statement select(database_, "SELECT folder, stamp, facts FROM runs");
  int code = SQLITE_DONE;
  while ((code = select.step()) == SQLITE_ROW) rows[select.text(0)] = {select.text(1), select.text(2)};
  // Rows before a damaged page are not believed either.
  return code == SQLITE_DONE ? rows : std::map<std::string, Row>{};
}

bool RunIndex::update(const std::map<std::string, Row>& changed, const std::vector<std::string>& gone) {
  // IMMEDIATE takes the write lock now: a later one could be refused half-way.
  if (!run("BEGIN IMMEDIATE")) return false;
  bool ok = true;
  {
    Statement insert(database_, "INSERT OR REPLACE INTO runs VALUES (?, ?, ?)");
    for (const auto& [folder, row] : changed)
      ok = ok && insert.bind(1, folder).bind(2, row.stamp).bind(3, row.facts).done();
    Statement erase(database_, "DELETE FROM runs WHERE folder = ?");
    for (const std::string& folder : gone) ok = ok && erase.bind(1, folder).done();
  }
  if (ok && run("COMMIT")) return true;
  run("ROLLBACK");
  return false;
}

fs::path index_file_of(const fs::path& root) {
  const fs::path folder = user_cache("runs");
  std::error_code error;
  // However the root is written, its index is the same.
  const fs::path place = fs::canonical(root, error);
  if (folder.empty() || error) return {};
  Digest digest;
  digest.add(place.string());
  return folder / (digest.hex() + ".sqlite");
}

ListedRuns list_runs(const fs::path& root, const fs::path& index_file) {
  ListedRuns listed;
  std::optional<RunIndex> index = index_file.empty() ? std::nullopt : RunIndex::open(index_file);
  std::map<std::string, RunIndex::Row> known, changed;
  if (index) known = index->rows();
  for (const fs::path& folder : find_runs(root)) {
    // The stamp comes before the facts: a change in between makes the next list read them again.
    const std::string name = folder.lexically_relative(root).string(), stamp = stamp_of(folder);
    const auto found = known.find(name);
    std::optional<RunFacts> facts;
    if (found != known.end() && found->second.stamp == stamp) facts = facts_of(found->second.facts);
    if (!facts) {
      facts = read_run_facts(folder);
      ++listed.read_anew;
      changed[name] = {stamp, json_text(facts->json())};
    }
    // What is left in `known` at the end are folders that are gone.
    if (found != known.end()) known.erase(found);
    facts->folder = folder;  // however the root was written this time
    // A lock changes no stamp, so it is asked about every time.
    note_running(*facts);
    listed.runs.push_back(std::move(*facts));
  }
  std::vector<std::string> gone;
  for (const auto& [name, row] : known) gone.push_back(name);
  if (index && !(changed.empty() && gone.empty())) index->update(changed, gone);
  return listed;
}

}  // namespace headroom
