// Two sessions of one process: what the one keeps, maps or reads instead is nothing to the other.
#include "arrays/array_session.hpp"

#include "arrays/hdf5_array.hpp"
#include "h5_files.hpp"

namespace headroom {
namespace {

constexpr DLDataType f64{kDLFloat, 64, 1};

class ArraySessionTest : public TemporaryFolder {
 protected:
  // Chunks of 100 values, compressed: `first`, and each one more than the one before.
  std::string file(const std::string& name, double first) const {
    std::vector<double> values(1000);
    for (size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<double>(i);
    const std::string path = (folder_ / name).string();
    const Hdf5Lock lock;
    const Handle made = create_file(path);
    write_dataset(made.get(), "x", H5T_IEEE_F64LE, {1000}, values, {100}, /*deflate=*/1);
    return path;
  }

  static double first_of(const Hdf5Array& array) {
    double value = -1;
    const uint64_t start = 0, count = 1;
    const hr_array_target target{HR_WHOLE, f64, &value, 0};
    array.read_box({&start, 1}, {&count, 1}, {&target, 1});
    return value;
  }

  static double first_of(const std::shared_ptr<Session>& session, const std::string& path) {
    hr_array* array = nullptr;
    hr_error error{sizeof(hr_error), HR_OK, {}};
    EXPECT_EQ(arrays_service().open(session->host_for("plugin"), path.c_str(), "x", &array, &error), HR_OK)
        << error.message;
    const double value = first_of(*reinterpret_cast<const Hdf5Array*>(array));
    arrays_service().close(array);
    return value;
  }

  const std::shared_ptr<ArraySession> one_ = std::make_shared<ArraySession>(),
                                      other_ = std::make_shared<ArraySession>();
};

TEST_F(ArraySessionTest, EachKeepsItsOwnChunks) {
  const std::string path = file("a.h5", 5);
  other_->set_chunk_cache_limit(0);
  const Hdf5Array kept(path, "x", one_), not_kept(path, "x", other_);
  for (int pass = 0; pass < 2; ++pass) {
    EXPECT_EQ(first_of(kept), 5);
    EXPECT_EQ(first_of(not_kept), 5);
  }
  EXPECT_EQ(one_->chunks()->statistics().hits, 1u);
  EXPECT_EQ(one_->chunks()->statistics().kept_bytes, 800u);
  EXPECT_EQ(other_->chunks()->statistics().hits, 0u);
  EXPECT_EQ(other_->chunks()->statistics().kept_bytes, 0u);
}

TEST_F(ArraySessionTest, ASubstituteIsOfOneSession) {
  const std::string path = file("a.h5", 5), instead = file("b.h5", 70);
  const auto one = Session::make(one_, nullptr), other = Session::make(other_, nullptr);
  one_->substitute({{path, "x", instead}});
  EXPECT_EQ(first_of(one, path), 70);
  EXPECT_EQ(first_of(other, path), 5);
  one_->substitute({});
  EXPECT_EQ(first_of(one, path), 5);
}

TEST_F(ArraySessionTest, ACensusCountsWhatIsOpenedWithItsSession) {
  const std::string path = file("a.h5", 5);
  const auto one = Session::make(one_, nullptr), other = Session::make(other_, nullptr);
  const LayoutCensus census(one_);
  first_of(other, path);
  EXPECT_EQ(census.total().datasets, 0u);
  first_of(one, path);
  first_of(one, path);
  EXPECT_EQ(census.total().datasets, 1u);
  EXPECT_EQ(census.total().largest_chunk_bytes, 800u);
}

// libhdf5's caches are the process's; each dataset's comes out of the limit of who opened it there.
TEST_F(ArraySessionTest, LibhdfsCachesComeOutOfTheLimitOfWhoReads) {
  const std::string path = file("a.h5", 5), later = file("b.h5", 6);
  constexpr uint64_t bytes = 1 << 20;
  one_->set_chunk_cache_limit(bytes);
  const Hdf5Lock lock;
  const auto first = Hdf5File::share(path), second = Hdf5File::share(later);
  first->dataset("/x", bytes, one_->chunks());
  EXPECT_FALSE(one_->chunks()->is_overdrawn());
  second->dataset("/x", bytes, other_->chunks());
  EXPECT_FALSE(one_->chunks()->is_overdrawn());
  EXPECT_FALSE(other_->chunks()->is_overdrawn());
  one_->set_chunk_cache_limit(bytes / 2);  // closes the first file, and not the second
  EXPECT_FALSE(one_->chunks()->is_overdrawn());
}

TEST_F(ArraySessionTest, LivesAsLongAsItsArrays) {
  auto session = std::make_shared<ArraySession>();
  const std::weak_ptr<ArraySession> watched = session;
  {
    const Hdf5Array array(file("a.h5", 5), "x", std::move(session));
    EXPECT_EQ(first_of(array), 5);
    EXPECT_FALSE(watched.expired());
  }
  EXPECT_TRUE(watched.expired());
}

}  // namespace
}  // namespace headroom
