// The worker processes of one open dataset. A read borrows one that is idle, or starts another. In a run there are
// never more than data.num_workers, which training and evaluation share; reads that want one stand in line.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "headroom/sdk/fields.hpp"
#include "headroom/sdk/host.hpp"
#include "headroom/sdk/read_request.hpp"
#include "worker_process.hpp"

namespace headroom::python {

struct DatasetSettings {
  std::filesystem::path program, file;
  std::string class_name;
  std::vector<std::string> split_args;  // JSON objects, one a split
  std::vector<std::string> names;       // of the items of a sample; {}: its own
  double most_read_s = 300;
};

struct SampleAddress {
  uint32_t split = 0;
  uint64_t index = 0;
  auto operator<=>(const SampleAddress&) const = default;
};

class DatasetWorkers {
 public:
  // Starts one, which loads the file and looks at a few samples. Error(invalid argument) with what is wrong there.
  DatasetWorkers(const sdk::Host& host, DatasetSettings settings);

  const std::vector<sdk::Field>& fields() const { return fields_; }
  uint64_t length(uint32_t split) const { return lengths_.at(split); }
  // Files of the user that were imported.
  const std::vector<std::filesystem::path>& imported() const { return imported_; }

  // Reads sample i of the request into its slots; what it draws follows from `seed`. A worker that ends meanwhile, or
  // gives nothing in time, is replaced, once. Error(data corrupt) names the sample, its field or line, and what
  // happened; Error(out of memory) also where two workers were killed. [any]
  void read(const sdk::ReadRequest& request, uint64_t i, uint64_t seed);

 private:
  // Ends a worker, and makes room for another. Not under mutex_.
  struct End {
    DatasetWorkers* workers;
    void operator()(WorkerProcess* worker) const;
  };
  using Worker = std::unique_ptr<WorkerProcess, End>;
  struct Idle {
    Worker worker;
    std::chrono::steady_clock::time_point since;
  };
  class Turn;  // a read that wants a worker
  void leave();
  Worker start();
  std::vector<std::string> ask_at_start(WorkerProcess& worker, const std::vector<std::string>& question);
  void survey(WorkerProcess& worker, const std::vector<std::string>& loaded);
  void lay_out(WorkerProcess& worker);
  Worker take();
  void give_back(Worker worker);
  Worker replaced(Worker worker);
  void copy_to_slots(const WorkerProcess& worker, const sdk::ReadRequest& request, uint64_t i) const;
  void require_alive(const SampleAddress& sample);
  [[noreturn]] void refuse_deadly(const SampleAddress& sample, const WorkerEnded& end);
  [[noreturn]] void refuse(const SampleAddress& sample, const WorkerRefused& refused) const;
  std::string name_of(const SampleAddress& sample) const;

  sdk::Host host_;
  DatasetSettings settings_;
  std::vector<uint64_t> lengths_;
  std::vector<std::filesystem::path> imported_;
  std::vector<sdk::Field> fields_;
  std::vector<std::string> rows_;  // name, dtype, shape of each field, as the worker told them
  std::vector<uint64_t> offsets_;  // of fields in a worker's memory
  uint64_t memory_bytes_ = 0;

  ChildStarter starter_;  // outlives the workers
  std::mutex mutex_;
  std::condition_variable changed_;              // one is idle, or has ended
  const uint64_t most_;                          // at once
  uint64_t existing_ = 0;                        // idle or borrowed, with those that start or end
  std::list<const Turn*> line_;                  // those that want a worker, the next one first
  std::vector<Idle> idle_;                       // the last one was used last
  std::map<SampleAddress, std::string> deadly_;  // of samples that ended two workers, the sentence
};

}  // namespace headroom::python
