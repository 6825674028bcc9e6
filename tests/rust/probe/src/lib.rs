//! A source for tests of the crate: rows of a dataset that the host reads, or ones without it; panics where the options say so.
#![deny(unsafe_code)]

use headroom::{
    invalid, Array, Attribute, Datasource, Field, Host, Opt, Options, Reader, Result, Sample, Scratch, Target,
};
use std::path::PathBuf;

struct Probe {
    host: Host,
    path: Option<PathBuf>,
    rows: u64,
    width: usize,
    scale: f32,
    panics: String,
}

struct ProbeReader {
    values: Option<Array>,
    row: Scratch<f64>,
}

impl Datasource for Probe {
    type Reader = ProbeReader;

    fn options() -> Vec<Opt> {
        vec![
            Opt::path("path").help("an HDF5 file with a dataset /values"),
            Opt::string("panics").default("never").choices(&["never", "open", "read"]).help("where it is a bad plugin"),
            Opt::bool("refuses").default(false).help("whether it opens nothing"),
        ]
    }

    fn open(host: &Host, options: &Options) -> Result<Self> {
        let panics = options.string("panics")?;
        assert!(panics != "open", "no opening for sample {}", 7);
        if options.bool("refuses")? {
            return Err(invalid("refuses must be false, not true"));
        }
        let mut probe = Probe { host: *host, path: None, rows: 20, width: 3, scale: 1.0, panics };
        if options.has("path")? {
            probe.look_at(options.path("path")?)?;
        }
        Ok(probe)
    }

    fn fields(&self) -> Vec<Field> {
        vec![Field::f32("x", &[self.width]), Field::f32("y", &[1])]
    }

    fn length(&self, _split: u32) -> u64 {
        self.rows
    }

    fn files(&self) -> Vec<PathBuf> {
        self.path.iter().cloned().collect()
    }

    fn reader(&self) -> Result<ProbeReader> {
        let values = match &self.path {
            Some(path) => Some(Array::open(&self.host, path, "values")?),
            None => None,
        };
        Ok(ProbeReader { values, row: Scratch::new(&self.host, self.width)? })
    }
}

impl Probe {
    fn look_at(&mut self, path: PathBuf) -> Result<()> {
        let info = Array::open(&self.host, &path, "values")?.info().clone();
        self.rows = info.shape[0];
        self.width = info.shape[1] as usize;
        if let Some(scale) = self.host.attribute(&path, "values", "scale")?.as_ref().and_then(Attribute::number) {
            self.scale = scale as f32;
        }
        let names = self.host.list_arrays(&path, "/")?;
        self.host.info(&format!("{} of {} names, {} bytes", names.len(), path.display(), self.host.file_size(&path)?));
        self.host.account("index", 8)?;
        self.path = Some(path);
        Ok(())
    }
}

impl Reader<Probe> for ProbeReader {
    fn read(&mut self, source: &Probe, sample: &mut Sample) -> Result<()> {
        source.host.check_cancelled()?;
        if source.panics == "read" && sample.index() == 5 {
            panic!("sample {} is not to be had", sample.index());
        }
        match &self.values {
            Some(values) => values.read_rows(sample.index(), 1, &mut [Target::whole(&mut self.row)])?,
            None => self.row.fill(1.0),
        }
        for (to, &from) in sample.slot::<f32>(0)?.iter_mut().zip(self.row.iter()) {
            *to = from as f32 * source.scale;
        }
        sample.slot::<f32>(1)?.fill(self.row.iter().sum::<f64>() as f32);
        Ok(())
    }
}

headroom::headroom_datasource!(Probe);
