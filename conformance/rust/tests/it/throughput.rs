//! Throughput, which the SDK finds by a query over offers.

use azure_data_cosmos::models::{ContainerProperties, ThroughputProperties};
use azure_data_cosmos::options::CreateContainerOptions;
use conformance::fixture::unique;
use conformance::{over_both, refused};

#[test]
fn throughput_of_a_container_is_read_and_replaced() {
    over_both(async |f| {
        let name = unique("c");
        let options = CreateContainerOptions::default().with_throughput(ThroughputProperties::manual(1000));
        let properties = ContainerProperties::new(name.clone(), "/pk".into());
        f.database.create_container(properties, Some(options)).await.unwrap();
        let container = f.database.container_client(name, None).await.unwrap();
        let rate = async || container.read_throughput(None).await.unwrap().unwrap().throughput();
        assert_eq!(rate().await, Some(1000));
        let wanted = ThroughputProperties::manual(1200);
        let replaced = container.begin_replace_throughput(wanted, None).await.unwrap().await.unwrap();
        assert_eq!(replaced.into_model().unwrap().throughput(), Some(1200));
        assert_eq!(rate().await, Some(1200));
        let refusal = match container.begin_replace_throughput(ThroughputProperties::manual(350), None).await
        {
            Ok(poller) => poller.await.map(|_| ()),
            Err(error) => Err(error),
        };
        refused(400, 0, refusal);
        assert_eq!(f.container.read_throughput(None).await.unwrap().unwrap().throughput(), Some(400));
        assert!(f.database.read_throughput(None).await.unwrap().is_none());
    });
}
